"""What an import keeps out of sight until it is verified: time entries too, and no log tells of it.

Revision ID: 0056
Revises: 0055
"""

import sqlalchemy as sa
from alembic import op

revision = "0056"
down_revision = "0055"
branch_labels = None
depends_on = None

MOST_APART = 500


def items_created(shown: str) -> str:
    """Log items that are made; of those for which `shown` does not hold nothing is said."""
    return f"""CREATE OR REPLACE FUNCTION log_items_created() RETURNS trigger
LANGUAGE plpgsql AS $body$
BEGIN
    INSERT INTO workspace_event
        (workspace_id, type, at, actor_type, actor_user_id, item_id, data)
    SELECT one.workspace_id, 'item.created', clock_timestamp(), actor.kind, actor.user_id, one.id,
        jsonb_strip_nulls(jsonb_build_object(
            'itemId', one.id, 'kind', one.kind, 'parentItemId', one.parent_item_id
        ))
    FROM after_rows AS one CROSS JOIN workspace_actor() AS actor
    WHERE {shown} AND (
        -- Of very many, those at the top stand for what is below them.
        (SELECT count(*) FROM (SELECT FROM after_rows LIMIT {MOST_APART + 1}) AS few) <= {MOST_APART}
        OR NOT EXISTS (SELECT FROM after_rows AS above WHERE above.id = one.parent_item_id)
    );
    RETURN NULL;
END
$body$"""


def database(shown: str) -> str:
    """Log a database that is made or changed, if `shown` holds."""
    return f"""CREATE OR REPLACE FUNCTION log_database() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
    type text := 'database.updated';
BEGIN
    IF TG_OP = 'INSERT' OR OLD.item_id IS NULL THEN
        type := 'database.created';
    END IF;
    IF {shown} THEN
        PERFORM append_workspace_event(
            NEW.workspace_id, type, NEW.item_id, jsonb_build_object('databaseId', NEW.id)
        );
    END IF;
    RETURN NULL;
END
$body$"""


def import_stage(told: str) -> str:
    """Log the stage of an import, if `told` holds."""
    return f"""CREATE OR REPLACE FUNCTION log_import_stage() RETURNS trigger
LANGUAGE plpgsql AS $body$
BEGIN
    IF {told} THEN
        PERFORM append_workspace_event(
            NEW.target_workspace_id, 'import.stage', NULL, jsonb_build_object(
                'importRunId', NEW.run_id, 'entryId', NEW.id, 'stage', NEW.stage
            )
        );
    END IF;
    RETURN NULL;
END
$body$"""


def upgrade() -> None:
    op.add_column("time_entry", sa.Column("deleted_at", sa.DateTime(timezone=True)))
    op.execute(items_created("one.deleted_at IS NULL"))
    op.execute(
        database("NOT EXISTS (SELECT FROM item WHERE id = NEW.item_id AND deleted_at IS NOT NULL)")
    )
    op.execute(
        import_stage("EXISTS (SELECT FROM workspace WHERE id = NEW.target_workspace_id)")
    )


def downgrade() -> None:
    op.execute(import_stage("true"))
    op.execute(database("true"))
    op.execute(items_created("true"))
    op.drop_column("time_entry", "deleted_at")
