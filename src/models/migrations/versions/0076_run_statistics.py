"""Statistics of runs: a run that ends is noted, and then added to the sums (ADR 0093)."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0076"
down_revision = "0074"
branch_labels = None
depends_on = None

NOTED = """
CREATE FUNCTION note_ended_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- A row that was put back may end again.
    INSERT INTO ended_run (run_id, workspace_id) VALUES (NEW.id, NEW.workspace_id)
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;
CREATE TRIGGER note_ended_run AFTER UPDATE OF status ON automation_run
    FOR EACH ROW WHEN (
        NEW.status IN ('succeeded', 'failed', 'cancelled', 'timed_out')
        AND OLD.status IS DISTINCT FROM NEW.status
        AND NEW.source <> 'test' AND NEW.options -> 'test' IS DISTINCT FROM 'true'::jsonb
    )
    EXECUTE FUNCTION note_ended_run();
"""


def upgrade() -> None:
    op.create_table(
        "ended_run",
        sa.Column("run_id", sa.Uuid(), primary_key=True),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
    )
    op.create_index("ix_ended_run_workspace_id", "ended_run", ["workspace_id"])
    _create_sums(
        "run_statistic",
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("duration", sa.SmallInteger(), nullable=False),
        sa.Column("queueing", sa.SmallInteger(), nullable=False),
    )
    _create_sums(
        "failure_statistic",
        sa.Column("node_id", sa.String(), nullable=False),
        sa.Column("error_code", sa.String(), nullable=False),
    )
    op.execute(NOTED)


def _create_sums(name: str, *others: sa.Column[Any]) -> None:
    key: tuple[sa.Column[Any], ...] = (
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("grain", sa.String(), nullable=False),
        sa.Column("start", sa.DateTime(timezone=True), nullable=False),
        sa.Column("automation_id", sa.Uuid(), nullable=False),
        *others,
    )
    op.create_table(
        name,
        *key,
        sa.Column("runs", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint(*[column.name for column in key], name=f"pk_{name}"),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspace.id"], name=f"fk_{name}_workspace_id_workspace"
        ),
    )
    op.create_index(f"ix_{name}_grain_start", name, ["grain", "start"])


def downgrade() -> None:
    op.execute("DROP TRIGGER note_ended_run ON automation_run; DROP FUNCTION note_ended_run()")
    for table in ("failure_statistic", "run_statistic", "ended_run"):
        op.drop_table(table)
