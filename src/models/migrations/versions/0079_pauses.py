"""Pauses, and the intents that rest under them (ADR 0097)."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0079"
down_revision = "0078"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "pause",
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("subject_kind", sa.String(), nullable=False),
        sa.Column("subject_id", sa.Uuid(), nullable=False),
        sa.Column("cause", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("paused_by_user_id", sa.Uuid()),
        sa.Column("paused_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("resumed_at", sa.DateTime(timezone=True)),
        sa.Column("rate", sa.Integer()),
        sa.Column("due_at", sa.DateTime(timezone=True)),
        sa.UniqueConstraint("subject_id", "cause", name="uq_pause_subject_id_cause"),
        sa.CheckConstraint(
            "subject_kind IN ('automation', 'connection', 'workspace')",
            name="ck_pause_subject_kind",
        ),
        sa.CheckConstraint("cause IN ('person', 'circuit_breaker')", name="ck_pause_cause"),
    )
    op.create_index(
        "ix_pause_due_at", "pause", ["due_at"], postgresql_where=sa.text("due_at IS NOT NULL")
    )
    op.create_index("ix_pause_workspace_id", "pause", ["workspace_id"])
    _create_resting_intent()


def _create_resting_intent() -> None:
    op.create_table(
        "resting_intent",
        sa.Column("work_id", sa.Uuid(), primary_key=True),
        sa.Column("intent", sa.String(), primary_key=True),
        sa.Column("pause_id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("family", sa.String(), nullable=False),
        sa.Column("request", postgresql.JSONB(), nullable=False),
        sa.Column("subject_ids", postgresql.ARRAY(sa.Uuid()), nullable=False),
        sa.Column("accepted_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["pause_id"],
            ["pause.id"],
            name="fk_resting_intent_pause_id_pause",
            ondelete="CASCADE",
        ),
    )
    op.create_index(
        "ix_resting_intent_pause_id_accepted_at",
        "resting_intent",
        ["pause_id", "accepted_at", "work_id", "intent"],
    )
    op.create_index("ix_resting_intent_workspace_id", "resting_intent", ["workspace_id"])


def downgrade() -> None:
    # What rests starts after the way back: nothing that was accepted is lost.
    op.execute(
        "INSERT INTO outbox (workspace_id, intent, family, subject_id, request, created_at,"
        " attempts) SELECT workspace_id, intent, family, work_id, request, accepted_at, 0"
        " FROM resting_intent ORDER BY accepted_at, work_id"
    )
    op.drop_table("resting_intent")
    op.drop_table("pause")
