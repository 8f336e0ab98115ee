"""Undoes of runs, the changes of records that they make, and operations that undo many runs."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0101"
down_revision = "0100"
branch_labels = None
depends_on = None

ACTIONS = "ck_run_operation_ck_run_operation_action"


def upgrade() -> None:
    op.create_table(
        "run_undo",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("undoes_id", sa.Uuid(), nullable=True),
        sa.Column("operation_id", sa.Uuid(), nullable=True),
        sa.Column("actor_user_id", sa.Uuid(), nullable=False),
        sa.Column("stage", sa.String(), nullable=False),
        sa.Column("after_record_id", sa.Uuid(), nullable=True),
        sa.Column("runs", sa.Integer(), nullable=False),
        sa.Column("records", sa.Integer(), nullable=False),
        sa.Column("reverted", sa.Integer(), nullable=False),
        sa.Column("conflict_count", sa.Integer(), nullable=False),
        sa.Column("conflicts", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["workspace_id", "run_id"],
            ["automation_run.workspace_id", "automation_run.id"],
            name=op.f("fk_run_undo_workspace_id_run_id_automation_run"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run_undo")),
    )
    op.create_index("ix_run_undo_run_id", "run_undo", ["run_id", "id"], unique=False)
    op.create_index(
        "ix_record_creation_run_id",
        "record",
        ["creation_run_id", "id"],
        unique=False,
        postgresql_where=sa.text("creation_run_id IS NOT NULL"),
    )
    op.add_column("record_change", sa.Column("undo_id", sa.Uuid(), nullable=True))
    op.create_index(
        "ix_record_change_run_id",
        "record_change",
        ["run_id", "record_id"],
        unique=False,
        postgresql_where=sa.text("run_id IS NOT NULL"),
    )
    op.create_index(
        "ix_record_change_undo_id",
        "record_change",
        ["undo_id", "record_id"],
        unique=False,
        postgresql_where=sa.text("undo_id IS NOT NULL"),
    )
    op.drop_constraint(op.f(ACTIONS), "run_operation", type_="check")
    op.create_check_constraint(
        op.f(ACTIONS), "run_operation", "action IN ('cancel', 'retry', 'resume', 'undo')"
    )


def downgrade() -> None:
    op.execute(
        "DELETE FROM run_operation_result USING run_operation"
        " WHERE run_operation.id = run_operation_result.operation_id AND action = 'undo'"
    )
    op.execute("DELETE FROM run_operation WHERE action = 'undo'")
    op.drop_constraint(op.f(ACTIONS), "run_operation", type_="check")
    op.create_check_constraint(
        op.f(ACTIONS), "run_operation", "action IN ('cancel', 'retry', 'resume')"
    )
    op.drop_index(
        "ix_record_change_undo_id",
        table_name="record_change",
        postgresql_where=sa.text("undo_id IS NOT NULL"),
    )
    op.drop_index(
        "ix_record_change_run_id",
        table_name="record_change",
        postgresql_where=sa.text("run_id IS NOT NULL"),
    )
    op.drop_column("record_change", "undo_id")
    op.drop_index(
        "ix_record_creation_run_id",
        table_name="record",
        postgresql_where=sa.text("creation_run_id IS NOT NULL"),
    )
    op.drop_index("ix_run_undo_run_id", table_name="run_undo")
    op.drop_table("run_undo")
