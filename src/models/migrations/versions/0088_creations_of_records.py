"""Records that tell of their own creation until something changes them (ADR 0117).

What is there has its creation in the history. A creation that is written later has been told when
the record was inserted.
"""

import sqlalchemy as sa
from alembic import op

revision = "0088"
down_revision = "0087"
branch_labels = None
depends_on = None

LOG_CHANGES = """
CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    number integer := (SELECT count(*) FROM (SELECT FROM {rows} AS one LIMIT 501) AS few);
BEGIN
    -- What a transaction writes by several statements is counted by the first event.
    IF current_setting('workspace.counted', true) <> '' THEN
        WITH more AS (
            SELECT database_id, kind, actor_user_id, run_id, count(*) AS count
            FROM {rows} AS one GROUP BY database_id, kind, actor_user_id, run_id
        )
        UPDATE workspace_event AS told
        SET data = jsonb_set(
            told.data, '{count}', to_jsonb((told.data ->> 'count')::bigint + more.count)
        )
        FROM more
        WHERE (SELECT count(*) FROM more) = 1
            AND told.seq = current_setting('workspace.counted')::bigint
            AND told.type = 'record.' || more.kind
            AND told.data ->> 'databaseId' = more.database_id::text
            AND told.data ->> 'runId' IS NOT DISTINCT FROM more.run_id::text
            AND told.actor_user_id IS NOT DISTINCT FROM more.actor_user_id;
        IF FOUND THEN
            RETURN NULL;
        END IF;
    END IF;
    IF number <= 50 THEN
        INSERT INTO workspace_event
            (workspace_id, type, at, actor_type, actor_user_id, item_id, data)
        SELECT one.workspace_id, 'record.' || one.kind, one.at, one.principal_type,
            CASE
                WHEN one.principal_type <> 'system'
                    OR EXISTS (SELECT FROM app_user WHERE app_user.id = one.actor_user_id)
                THEN one.actor_user_id
            END,
            database.item_id, jsonb_strip_nulls(jsonb_build_object(
                'databaseId', one.database_id, 'recordId', one.record_id, 'runId', one.run_id
            ))
        FROM {rows} AS one JOIN database ON database.id = one.database_id
        WHERE database.item_id IS NOT NULL AND database.workspace_id = one.workspace_id;
    ELSE
        INSERT INTO workspace_event
            (workspace_id, type, at, actor_type, actor_user_id, item_id, data)
        SELECT one.workspace_id, 'record.' || one.kind, one.at, one.principal_type,
            CASE
                WHEN one.principal_type <> 'system'
                    OR EXISTS (SELECT FROM app_user WHERE app_user.id = one.actor_user_id)
                THEN one.actor_user_id
            END,
            database.item_id, jsonb_strip_nulls(jsonb_build_object(
                'databaseId', one.database_id, 'count', one.count, 'runId', one.run_id,
                'recordIds', one.ids
            ))
        FROM (
            SELECT workspace_id, database_id, kind, principal_type, actor_user_id, run_id,
                max(at) AS at, count(*) AS count,
                CASE WHEN number <= 500 THEN jsonb_agg(record_id) END AS ids
            FROM {rows} AS one
            GROUP BY workspace_id, database_id, kind, principal_type, actor_user_id, run_id
        ) AS one JOIN database ON database.id = one.database_id
        WHERE database.item_id IS NOT NULL AND database.workspace_id = one.workspace_id;
        IF number > 500 AND FOUND THEN
            PERFORM set_config(
                'workspace.counted', currval('workspace_event_number')::text, true
            );
        END IF;
    END IF;
    RETURN NULL;
END
$$
"""

WRITTEN = "after_rows"
WRITTEN_AT_ONCE = "(SELECT * FROM after_rows WHERE written_at IS NULL)"
READ_FROM_RECORDS = """(
        SELECT workspace_id, database_id, id AS record_id, 'created' AS kind,
            creation_principal_type AS principal_type, created_by_user_id AS actor_user_id,
            creation_run_id AS run_id, created_at AS at
        FROM after_rows WHERE creation_principal_type IS NOT NULL
    )"""

TRIGGER = """
CREATE TRIGGER log_record_created AFTER INSERT ON record
    REFERENCING NEW TABLE AS after_rows FOR EACH STATEMENT
    EXECUTE FUNCTION log_created_records()
"""

# Writers do this for all rows of a statement, in a tenth of the time. A process of an earlier
# version does not know of it.
WRITE_CREATION = """
CREATE FUNCTION write_creation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO record_change
        (id, workspace_id, database_id, record_id, kind, actor_user_id, principal_type, run_id,
        after, at, written_at)
    VALUES
        (OLD.id, OLD.workspace_id, OLD.database_id, OLD.id, 'created', OLD.created_by_user_id,
        OLD.creation_principal_type, OLD.creation_run_id,
        jsonb_build_object('title', OLD.title) || OLD.data, OLD.created_at, now());
    NEW.creation_principal_type := NULL;
    NEW.creation_run_id := NULL;
    RETURN NEW;
END
$$;
CREATE TRIGGER write_creation BEFORE UPDATE OF title, data ON record FOR EACH ROW
    WHEN (
        OLD.creation_principal_type IS NOT NULL AND NEW.creation_principal_type IS NOT NULL
        AND (OLD.title, OLD.data) IS DISTINCT FROM (NEW.title, NEW.data)
    )
    EXECUTE FUNCTION write_creation()
"""

WRITE_CREATIONS = """
INSERT INTO record_change
    (id, workspace_id, database_id, record_id, kind, actor_user_id, principal_type, run_id, after,
    at, written_at)
SELECT id, workspace_id, database_id, id, 'created', created_by_user_id, creation_principal_type,
    creation_run_id, jsonb_build_object('title', title) || data, created_at, now()
FROM record WHERE creation_principal_type IS NOT NULL
"""


def upgrade() -> None:
    op.add_column("record", sa.Column("creation_principal_type", sa.String(), nullable=True))
    op.add_column("record", sa.Column("creation_run_id", sa.Uuid(), nullable=True))
    op.add_column(
        "record_change", sa.Column("written_at", sa.DateTime(timezone=True), nullable=True)
    )
    op.execute(_log("log_records", WRITTEN_AT_ONCE))
    op.execute(_log("log_created_records", READ_FROM_RECORDS))
    op.execute(TRIGGER)
    op.execute(WRITE_CREATION)


def downgrade() -> None:
    op.execute(WRITE_CREATIONS)
    op.execute("DROP TRIGGER write_creation ON record")
    op.execute("DROP FUNCTION write_creation()")
    op.execute("DROP TRIGGER log_record_created ON record")
    op.execute("DROP FUNCTION log_created_records()")
    op.execute(_log("log_records", WRITTEN))
    op.drop_column("record_change", "written_at")
    op.drop_column("record", "creation_run_id")
    op.drop_column("record", "creation_principal_type")


def _log(function: str, rows: str) -> str:
    return LOG_CHANGES.replace("{function}", function).replace("{rows}", rows)
