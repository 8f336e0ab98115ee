"""Records written in batches: one event counts them, and their index grows at its end.

Many rows of one transaction have the same time and ascending ids. An index of descending ids takes
each before the last one, and its pages stay half full.
"""

import sqlalchemy as sa
from alembic import op

revision = "0086"
down_revision = "0084"
branch_labels = None
depends_on = None

INDEX = "ix_record_workspace_id_database_id_archived_created_at_id"
PLACE = ("workspace_id", "database_id", "archived")

LOG_RECORDS = """
CREATE OR REPLACE FUNCTION log_records() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    number integer := (SELECT count(*) FROM (SELECT FROM after_rows LIMIT 501) AS few);
BEGIN
    {counted_before}
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
        FROM after_rows AS one JOIN database ON database.id = one.database_id
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
            FROM after_rows
            GROUP BY workspace_id, database_id, kind, principal_type, actor_user_id, run_id
        ) AS one JOIN database ON database.id = one.database_id
        WHERE database.item_id IS NOT NULL AND database.workspace_id = one.workspace_id;
        {counted_now}
    END IF;
    RETURN NULL;
END
$$
"""

COUNTED_BEFORE = """-- What a transaction writes by several statements is counted by the first event.
    IF current_setting('workspace.counted', true) <> '' THEN
        WITH more AS (
            SELECT database_id, kind, actor_user_id, run_id, count(*) AS count
            FROM after_rows GROUP BY database_id, kind, actor_user_id, run_id
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
    END IF;"""

COUNTED_NOW = """IF number > 500 AND FOUND THEN
            PERFORM set_config(
                'workspace.counted', currval('workspace_event_number')::text, true
            );
        END IF;"""


def upgrade() -> None:
    op.execute(_log_records(COUNTED_BEFORE, COUNTED_NOW))
    _index_records("created_at", "id")


def downgrade() -> None:
    _index_records(sa.text("created_at DESC"), sa.text("id DESC"))
    op.execute(_log_records("", ""))


def _log_records(counted_before: str, counted_now: str) -> str:
    return LOG_RECORDS.replace("{counted_before}", counted_before).replace(
        "{counted_now}", counted_now
    )


def _index_records(*order: str | sa.TextClause) -> None:
    op.drop_index(INDEX, table_name="record")
    op.create_index(
        INDEX, "record", [*PLACE, *order], postgresql_where=sa.text("deleted_at IS NULL")
    )
