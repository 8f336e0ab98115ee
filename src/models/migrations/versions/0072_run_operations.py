"""Operations over runs, the runs of each, and the retries of a run found by it."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0072"
down_revision = "0071"
branch_labels = None
depends_on = None

OPEN = "status IN ('queued', 'running')"
MOVES = """
CREATE FUNCTION run_operation_status_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status = OLD.status
        OR (OLD.status = 'queued' AND NEW.status IN ('cancelled', 'failed', 'paused', 'running'))
        OR (OLD.status = 'running' AND NEW.status IN (
            'cancelled', 'failed', 'paused', 'succeeded'
        ))
        OR (OLD.status = 'paused' AND NEW.status IN ('cancelled', 'queued'))
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'status of run_operation cannot change from % to %', OLD.status, NEW.status
        USING ERRCODE = '23514', TABLE = 'run_operation',
            CONSTRAINT = 'run_operation_status_transition';
END
$$;
CREATE TRIGGER run_operation_status_transition BEFORE UPDATE OF status ON run_operation
    FOR EACH ROW EXECUTE FUNCTION run_operation_status_transition();
"""


def upgrade() -> None:
    op.create_table(
        "run_operation",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("actor_user_id", sa.Uuid(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("selection", postgresql.JSONB(), nullable=False),
        sa.Column("parameters", postgresql.JSONB(), nullable=False),
        sa.Column("rate", sa.Float(), nullable=True),
        sa.Column("undoes_id", sa.Uuid(), nullable=True),
        sa.Column("execution", sa.Integer(), nullable=False),
        sa.Column("selected", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=True),
        sa.Column("treated", sa.Integer(), nullable=False),
        sa.Column("succeeded", sa.Integer(), nullable=False),
        sa.Column("skipped", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("paced_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("dispatched_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "action IN ('cancel', 'retry', 'resume')", name="ck_run_operation_action"
        ),
        sa.CheckConstraint(
            "status IN ('queued', 'running', 'paused', 'succeeded', 'failed', 'cancelled')",
            name="ck_run_operation_status",
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspace.id"], name="fk_run_operation_workspace_id_workspace"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_run_operation"),
        sa.UniqueConstraint("workspace_id", "id", name="uq_run_operation_workspace_id_id"),
    )
    op.execute(MOVES)
    op.create_index(
        "ix_run_operation_open", "run_operation", ["id"], postgresql_where=sa.text(OPEN)
    )
    op.create_index(
        "ix_run_operation_open_workspace_id",
        "run_operation",
        ["workspace_id"],
        postgresql_where=sa.text(OPEN),
    )
    op.create_index(
        "ix_run_operation_dispatched",
        "run_operation",
        ["workspace_id"],
        postgresql_where=sa.text(f"dispatched_at IS NOT NULL AND {OPEN}"),
    )
    op.create_table(
        "run_operation_result",
        sa.Column("operation_id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("new_run_id", sa.Uuid(), nullable=True),
        sa.CheckConstraint(
            "outcome IN ('succeeded', 'skipped', 'failed')", name="ck_run_operation_result_outcome"
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id", "operation_id"],
            ["run_operation.workspace_id", "run_operation.id"],
            name="fk_run_operation_result_workspace_id_operation_id_run_operation",
        ),
        sa.PrimaryKeyConstraint("operation_id", "position", name="pk_run_operation_result"),
        sa.UniqueConstraint(
            "operation_id", "run_id", name="uq_run_operation_result_operation_id_run_id"
        ),
    )
    op.create_index(
        "ix_run_operation_result_outcome",
        "run_operation_result",
        ["operation_id", "outcome", "position"],
        postgresql_where=sa.text("outcome IN ('skipped', 'failed')"),
    )
    op.create_index(
        "ix_automation_run_replay_of_run_id",
        "automation_run",
        ["replay_of_run_id"],
        postgresql_where=sa.text("replay_of_run_id IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("ix_automation_run_replay_of_run_id", table_name="automation_run")
    op.drop_table("run_operation_result")
    op.drop_table("run_operation")
    op.execute("DROP FUNCTION run_operation_status_transition()")
