"""A dry run captures the records that a statement creates as one row."""

from alembic import op

revision = "0111"
down_revision = "0110"
branch_labels = None
depends_on = None

CAPTURE = """
ALTER TABLE dry_run_change ADD COLUMN created UUID[];

-- Once for a statement: a batch writes hundreds of records. Other triggers of the table read the
-- same transition tables, so that they cost other writers nothing.
CREATE FUNCTION capture_dry_run_records() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO dry_run_change
            (transaction_id, source, subject, workspace_id, place, place_id, created)
        SELECT pg_current_xact_id()::text::bigint, 'record', '', workspace_id,
            'database', database_id, array_agg(id)
        FROM after_rows GROUP BY workspace_id, database_id;
    ELSE
        INSERT INTO dry_run_change
            (transaction_id, source, subject, workspace_id, place, place_id, before, after)
        SELECT pg_current_xact_id()::text::bigint, 'record', id, workspace_id,
            'database', database_id, to_jsonb(before_rows),
            CASE WHEN TG_OP = 'UPDATE' THEN '{}'::jsonb END
        FROM before_rows;
    END IF;
    RETURN NULL;
END
$$;

DROP TRIGGER capture_dry_run ON record;
CREATE TRIGGER capture_dry_run_deleted AFTER DELETE ON record
    REFERENCING OLD TABLE AS before_rows FOR EACH STATEMENT
    WHEN (current_setting('workspace.dry_run', true) = 'on')
    EXECUTE FUNCTION capture_dry_run_records();
CREATE TRIGGER capture_dry_run_inserted AFTER INSERT ON record
    REFERENCING NEW TABLE AS after_rows FOR EACH STATEMENT
    WHEN (current_setting('workspace.dry_run', true) = 'on')
    EXECUTE FUNCTION capture_dry_run_records();
CREATE TRIGGER capture_dry_run_updated AFTER UPDATE ON record
    REFERENCING OLD TABLE AS before_rows FOR EACH STATEMENT
    WHEN (current_setting('workspace.dry_run', true) = 'on')
    EXECUTE FUNCTION capture_dry_run_records();
DROP FUNCTION capture_dry_run_record;
DROP FUNCTION written_records;
"""

CAPTURE_BEFORE = """
CREATE FUNCTION written_records(written uuid[]) RETURNS TABLE (subject text, content jsonb)
LANGUAGE sql STABLE AS $$
    SELECT record.id::text, to_jsonb(record) FROM record WHERE record.id = ANY (written)
$$;

CREATE FUNCTION capture_dry_run_record() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    written record;
BEGIN
    IF TG_OP = 'INSERT' THEN
        written := NEW;
    ELSE
        written := OLD;
    END IF;
    INSERT INTO dry_run_change
        (transaction_id, source, subject, workspace_id, place, place_id, before, after)
    VALUES (
        pg_current_xact_id()::text::bigint, 'record', written.id, written.workspace_id,
        'database', written.database_id,
        CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(written) END,
        CASE WHEN TG_OP <> 'DELETE' THEN '{}'::jsonb END
    );
    RETURN NULL;
END
$$;

DROP TRIGGER capture_dry_run_deleted ON record;
DROP TRIGGER capture_dry_run_inserted ON record;
DROP TRIGGER capture_dry_run_updated ON record;
CREATE TRIGGER capture_dry_run AFTER INSERT OR UPDATE OR DELETE ON record FOR EACH ROW
    WHEN (current_setting('workspace.dry_run', true) = 'on')
    EXECUTE FUNCTION capture_dry_run_record();
DROP FUNCTION capture_dry_run_records;
ALTER TABLE dry_run_change DROP COLUMN created;
"""


def upgrade() -> None:
    # The driver takes a statement as it is: SQLAlchemy would read `:` and `%` as parameters.
    op.get_bind().connection.cursor().execute(CAPTURE)


def downgrade() -> None:
    op.get_bind().connection.cursor().execute(CAPTURE_BEFORE)
