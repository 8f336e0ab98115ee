"""The dispatch of trigger events.

Revision ID: 0016
Revises: 0015
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

# What was published before anybody listened begins to listen now.
SUBSCRIBE_PUBLISHED = """
WITH published AS (
    SELECT automation.id, automation.workspace_id, graph.trigger_config AS config,
        coalesce(
            graph.trigger_config ->> 'databaseId',
            graph.trigger_config ->> 'formItemId',
            graph.trigger_config ->> 'dataSourceId'
        ) AS subject
    FROM automation
    JOIN automation_version version ON version.id = automation.published_version_id
    JOIN automation_graph graph
        ON graph.automation_id = version.automation_id AND graph.checksum = version.checksum
    WHERE automation.enabled
)
INSERT INTO automation_subscription (
    automation_id, workspace_id, kind, subject_id, include_system, reached_at, look_at
)
SELECT id, workspace_id, config ->> 'kind',
    CASE WHEN config ->> 'kind' <> 'time_entry_completed' AND subject ~ '^[0-9a-fA-F-]{36}$'
        THEN subject::uuid END,
    config ->> 'kind' = 'record_date_reached'
        OR coalesce((config ->> 'includeSystemChanges')::boolean, false),
    CASE WHEN config ->> 'kind' = 'record_date_reached' THEN now() END,
    CASE WHEN config ->> 'kind' = 'record_date_reached' THEN now() END
FROM published
WHERE config ->> 'kind' IN (
    'record_created', 'record_updated', 'record_deleted', 'record_matches',
    'record_date_reached', 'form_submitted', 'button_pressed', 'data_source_finished',
    'automation_failed', 'time_entry_completed'
)
ON CONFLICT DO NOTHING
"""


def upgrade() -> None:
    op.drop_index("ix_trigger_event_due_at_id", table_name="trigger_event")
    op.create_index(
        "ix_trigger_event_workspace_id_id", "trigger_event", ["workspace_id", "id"], unique=False
    )
    op.add_column(
        "automation_subscription",
        sa.Column("include_system", sa.Boolean(), server_default=sa.text("false"), nullable=False),
    )
    op.add_column(
        "automation_subscription",
        sa.Column("after_event", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
    )
    op.add_column(
        "automation_subscription",
        sa.Column("reached_at", sa.DateTime(timezone=True), nullable=True),
    )
    op.add_column(
        "automation_subscription", sa.Column("look_at", sa.DateTime(timezone=True), nullable=True)
    )
    op.create_index(
        "ix_automation_subscription_look_at",
        "automation_subscription",
        ["look_at"],
        unique=False,
        postgresql_where=sa.text("look_at IS NOT NULL"),
    )
    op.create_table(
        "trigger_burst",
        sa.Column("automation_id", sa.Uuid(), nullable=False),
        sa.Column("record_id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("first_event_id", sa.Uuid(), nullable=False),
        sa.Column("first_event", sa.BigInteger(), nullable=False),
        sa.Column("last_event", sa.BigInteger(), nullable=False),
        sa.Column("change", postgresql.JSONB(), nullable=False),
        sa.Column("chain", sa.ARRAY(sa.Uuid()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id", "automation_id"],
            ["automation.workspace_id", "automation.id"],
            name=op.f("fk_trigger_burst_workspace_id_automation_id_automation"),
        ),
        sa.PrimaryKeyConstraint("automation_id", "record_id", name=op.f("pk_trigger_burst")),
    )
    op.create_index("ix_trigger_burst_due_at", "trigger_burst", ["due_at"], unique=False)
    op.execute(SUBSCRIBE_PUBLISHED)


def downgrade() -> None:
    op.drop_index("ix_trigger_burst_due_at", table_name="trigger_burst")
    op.drop_table("trigger_burst")
    op.drop_index(
        "ix_automation_subscription_look_at",
        table_name="automation_subscription",
        postgresql_where=sa.text("look_at IS NOT NULL"),
    )
    op.drop_column("automation_subscription", "look_at")
    op.drop_column("automation_subscription", "reached_at")
    op.drop_column("automation_subscription", "after_event")
    op.drop_column("automation_subscription", "include_system")
    op.drop_index("ix_trigger_event_workspace_id_id", table_name="trigger_event")
    op.create_index("ix_trigger_event_due_at_id", "trigger_event", ["due_at", "id"], unique=False)
