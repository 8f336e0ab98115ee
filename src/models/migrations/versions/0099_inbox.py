"""Inbox."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0099"
down_revision = "0098"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "inbox_event",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("subject_id", sa.Uuid(), nullable=False),
        sa.Column(
            "payload", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column("payload_bytes", sa.Integer(), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "source IN ('webhook', 'record', 'record_date', 'form', 'button', 'schedule', 'call', 'failure', 'data_source', 'time_entry')",
            name=op.f("ck_inbox_event_source"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_inbox_event")),
    )
    op.create_index("ix_inbox_event_received_at", "inbox_event", ["received_at"], unique=False)
    op.create_index(
        "ix_inbox_event_workspace_id_received_at_id",
        "inbox_event",
        ["workspace_id", "received_at", "id"],
        unique=False,
    )
    op.create_table(
        "inbox_outcome",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("event_id", sa.Uuid(), nullable=False),
        sa.Column("automation_id", sa.Uuid(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=True),
        sa.Column(
            "detail", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column("replay", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("judged_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "outcome IN ('run', 'queued', 'paused', 'debounced', 'filtered', 'filter_failed', 'duplicate', 'skipped', 'disabled', 'archived', 'no_published_version', 'wrong_method', 'unverified', 'too_large', 'invalid', 'not_allowed', 'loop', 'passed_over', 'failed')",
            name=op.f("ck_inbox_outcome_outcome"),
        ),
        sa.CheckConstraint(
            "source IN ('webhook', 'record', 'record_date', 'form', 'button', 'schedule', 'call', 'failure', 'data_source', 'time_entry')",
            name=op.f("ck_inbox_outcome_source"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_inbox_outcome")),
    )
    op.create_index(
        "ix_inbox_outcome_automation_id",
        "inbox_outcome",
        ["workspace_id", "automation_id", "received_at", "event_id"],
        unique=False,
    )
    op.create_index(
        "ix_inbox_outcome_event_id", "inbox_outcome", ["workspace_id", "event_id"], unique=False
    )
    op.create_index(
        "ix_inbox_outcome_outcome",
        "inbox_outcome",
        ["workspace_id", "outcome", "received_at", "event_id"],
        unique=False,
    )
    op.create_index("ix_inbox_outcome_received_at", "inbox_outcome", ["received_at"], unique=False)
    op.add_column("automation_subscription", sa.Column("dormant", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("automation_subscription", "dormant")
    op.drop_index("ix_inbox_outcome_received_at", table_name="inbox_outcome")
    op.drop_index("ix_inbox_outcome_outcome", table_name="inbox_outcome")
    op.drop_index("ix_inbox_outcome_event_id", table_name="inbox_outcome")
    op.drop_index("ix_inbox_outcome_automation_id", table_name="inbox_outcome")
    op.drop_table("inbox_outcome")
    op.drop_index("ix_inbox_event_workspace_id_received_at_id", table_name="inbox_event")
    op.drop_index("ix_inbox_event_received_at", table_name="inbox_event")
    op.drop_table("inbox_event")
