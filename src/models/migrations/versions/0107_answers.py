"""A graph is stored with what it names; a dry run reads written records when it ends."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0107"
down_revision = "0106"
branch_labels = None
depends_on = None

CAPTURE = """
-- Records as they are now, in the transaction that wrote them.
CREATE FUNCTION written_records(written uuid[]) RETURNS TABLE (subject text, content jsonb)
LANGUAGE sql STABLE AS $$
    SELECT record.id::text, to_jsonb(record) FROM record WHERE record.id = ANY (written)
$$;

-- A request writes up to thousands of records. What they become is read from them, so that only
-- what they were is copied.
CREATE FUNCTION capture_dry_run_record() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    written record%ROWTYPE;
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

DROP TRIGGER capture_dry_run ON record;
CREATE TRIGGER capture_dry_run AFTER INSERT OR UPDATE OR DELETE ON record FOR EACH ROW
    WHEN (current_setting('workspace.dry_run', true) = 'on')
    EXECUTE FUNCTION capture_dry_run_record();
"""

CAPTURED_BEFORE = """
DROP TRIGGER capture_dry_run ON record;
CREATE TRIGGER capture_dry_run AFTER INSERT OR UPDATE OR DELETE ON record FOR EACH ROW
    WHEN (current_setting('workspace.dry_run', true) = 'on')
    EXECUTE FUNCTION capture_dry_run('database', 'database_id', 'id');
DROP FUNCTION capture_dry_run_record;
DROP FUNCTION written_records;
"""


def upgrade() -> None:
    op.add_column(
        "automation_graph", sa.Column("references_version", sa.SmallInteger(), nullable=True)
    )
    op.add_column(
        "automation_graph",
        sa.Column("referenced_ids", postgresql.ARRAY(sa.String()), nullable=True),
    )
    op.add_column(
        "automation_graph",
        sa.Column("graph_references", postgresql.JSONB(), nullable=True),
    )
    # The driver takes a statement as it is: SQLAlchemy would read `:` and `%` as parameters.
    op.get_bind().connection.cursor().execute(CAPTURE)


def downgrade() -> None:
    op.get_bind().connection.cursor().execute(CAPTURED_BEFORE)
    op.drop_column("automation_graph", "graph_references")
    op.drop_column("automation_graph", "referenced_ids")
    op.drop_column("automation_graph", "references_version")
