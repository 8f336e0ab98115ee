"""Pauses, the intents that rest under them (ADR 0097), and circuit breakers (ADR 0098)."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0079"
down_revision = "0078"
branch_labels = None
depends_on = None

NOTED = """
CREATE FUNCTION note_run_for_breaker() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE circuit_breaker SET
        failed_in_a_row = CASE WHEN NEW.status = 'succeeded' THEN 0 ELSE failed_in_a_row END,
        trial_status = CASE WHEN trial_run_id = NEW.id THEN NEW.status ELSE trial_status END,
        due_at = CASE WHEN trial_run_id = NEW.id THEN now() ELSE due_at END
        WHERE automation_id = NEW.automation_id AND (
            trial_run_id = NEW.id
            OR (NEW.status = 'succeeded' AND state = 'closed' AND failed_in_a_row > 0)
        );
    RETURN NULL;
END
$$;
CREATE TRIGGER note_run_for_breaker AFTER UPDATE OF status ON automation_run
    FOR EACH ROW WHEN (
        NEW.status IN ('succeeded', 'failed', 'timed_out', 'cancelled')
        AND OLD.status IS DISTINCT FROM NEW.status
        AND NEW.source <> 'test' AND NEW.options -> 'test' IS DISTINCT FROM 'true'::jsonb
    )
    EXECUTE FUNCTION note_run_for_breaker();
"""

AWAITED = """
CREATE FUNCTION wake_breaker() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE circuit_breaker SET due_at = now() FROM pause
        WHERE pause.id = NEW.pause_id AND pause.cause = 'circuit_breaker'
            AND circuit_breaker.automation_id = pause.subject_id
            AND circuit_breaker.state = 'half_open' AND circuit_breaker.trial_run_id IS NULL
            AND circuit_breaker.due_at > now();
    RETURN NULL;
END
$$;
CREATE TRIGGER wake_breaker AFTER INSERT OR UPDATE OF pause_id ON resting_intent
    FOR EACH ROW EXECUTE FUNCTION wake_breaker();
"""


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
            "subject_kind IN ('automation', 'workspace')", name="ck_pause_subject_kind"
        ),
        sa.CheckConstraint("cause IN ('person', 'circuit_breaker')", name="ck_pause_cause"),
    )
    op.create_index(
        "ix_pause_due_at", "pause", ["due_at"], postgresql_where=sa.text("due_at IS NOT NULL")
    )
    op.create_index("ix_pause_workspace_id", "pause", ["workspace_id"])
    _create_resting_intent()
    _create_circuit_breaker()
    op.execute(NOTED)
    op.execute(AWAITED)


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


def _create_circuit_breaker() -> None:
    op.create_table(
        "circuit_breaker",
        sa.Column("automation_id", sa.Uuid(), primary_key=True),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("pause_seconds", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("failed_in_a_row", sa.Integer(), nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True)),
        sa.Column("due_at", sa.DateTime(timezone=True)),
        sa.Column("trial_run_id", sa.Uuid()),
        sa.Column("trial_status", sa.String()),
        sa.CheckConstraint(
            "state IN ('closed', 'open', 'half_open')", name="ck_circuit_breaker_state"
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id", "automation_id"],
            ["automation.workspace_id", "automation.id"],
            name="fk_circuit_breaker_workspace_id_automation_id_automation",
        ),
    )
    op.create_index(
        "ix_circuit_breaker_due_at",
        "circuit_breaker",
        ["due_at"],
        postgresql_where=sa.text("due_at IS NOT NULL"),
    )


def downgrade() -> None:
    op.execute(
        "DROP TRIGGER note_run_for_breaker ON automation_run; DROP FUNCTION note_run_for_breaker()"
    )
    op.execute("DROP TRIGGER wake_breaker ON resting_intent; DROP FUNCTION wake_breaker()")
    op.drop_table("circuit_breaker")
    # What rests starts after the way back: nothing that was accepted is lost.
    op.execute(
        "INSERT INTO outbox (workspace_id, intent, family, subject_id, request, created_at,"
        " attempts) SELECT workspace_id, intent, family, work_id, request, accepted_at, 0"
        " FROM resting_intent ORDER BY accepted_at, work_id"
    )
    op.drop_table("resting_intent")
    op.drop_table("pause")
