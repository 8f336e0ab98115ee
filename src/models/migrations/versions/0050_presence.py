"""Who is connected to which workspace; many records that one statement writes are told together.

Revision ID: 0050
Revises: 0049
"""

import sqlalchemy as sa
from alembic import op

revision = "0050"
down_revision = "0049"
branch_labels = None
depends_on = None


_INSERT = """INSERT INTO workspace_event
        (workspace_id, type, at, actor_type, actor_user_id, item_id, data)"""
_PERSON = """CASE WHEN one.principal_type <> 'system' OR EXISTS
            (SELECT FROM app_user WHERE app_user.id = one.actor_user_id) THEN one.actor_user_id END"""


def records(most_apart: int, most_named: int) -> str:
    """The function that tells of records: one by one, or of more than `most_apart` together.

    Of more than `most_named` only their number is told.
    """
    return f"""CREATE OR REPLACE FUNCTION log_records() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
    number integer := (SELECT count(*) FROM (SELECT FROM after_rows LIMIT {most_named + 1}) AS few);
BEGIN
    IF number <= {most_apart} THEN
        {_INSERT}
        SELECT one.workspace_id, 'record.' || one.kind, one.at, one.principal_type, {_PERSON},
            database.item_id, jsonb_strip_nulls(jsonb_build_object(
                'databaseId', one.database_id, 'recordId', one.record_id, 'runId', one.run_id
            ))
        FROM after_rows AS one JOIN database ON database.id = one.database_id
        WHERE database.item_id IS NOT NULL AND database.workspace_id = one.workspace_id;
    ELSE
        {_INSERT}
        SELECT one.workspace_id, 'record.' || one.kind, one.at, one.principal_type, {_PERSON},
            database.item_id, jsonb_strip_nulls(jsonb_build_object(
                'databaseId', one.database_id, 'count', one.count, 'runId', one.run_id,
                'recordIds', one.ids
            ))
        FROM (
            SELECT workspace_id, database_id, kind, principal_type, actor_user_id, run_id,
                max(at) AS at, count(*) AS count,
                CASE WHEN number <= {most_named} THEN jsonb_agg(record_id) END AS ids
            FROM after_rows
            GROUP BY workspace_id, database_id, kind, principal_type, actor_user_id, run_id
        ) AS one JOIN database ON database.id = one.database_id
        WHERE database.item_id IS NOT NULL AND database.workspace_id = one.workspace_id;
    END IF;
    RETURN NULL;
END
$body$"""


def upgrade() -> None:
    op.execute(records(50, 500))
    op.create_table(
        "realtime_presence",
        sa.Column("process_id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint(
            "process_id", "workspace_id", "user_id", name=op.f("pk_realtime_presence")
        ),
        prefixes=["UNLOGGED"],
    )
    op.create_index(
        "ix_realtime_presence_workspace_id", "realtime_presence", ["workspace_id"], unique=False
    )


def downgrade() -> None:
    op.execute(records(500, 500))
    op.drop_table("realtime_presence")
