"""The counts of work that ended, by kind and status, which metrics show (ADR 0136)."""

import sqlalchemy as sa
from alembic import op

revision = "0097"
down_revision = "0095"
branch_labels = None
depends_on = None

_SOURCE_RUN = (
    "CASE WHEN (NEW.data_source_id IS NULL)"
    " THEN 'spreadsheet-import' ELSE 'data-source-refresh' END"
)
_KINDS = {
    "action_run": ("'action-run'", "completed_at", "true"),
    "automation_run": ("'automation-run'", "completed_at", "true"),
    "data_source_run": (
        _SOURCE_RUN,
        "completed_at",
        "true",
    ),
    "delivery": ("'delivery'", "completed_at", "true"),
    "job": ("NEW.family", "completed_at", "true"),
    "legacy_import_run": ("'legacy-import'", "completed_at", "true"),
    "run_operation": ("'run-operation'", "completed_at", "true"),
    "time_entry": ("'timer-due'", "closed_at", "NEW.mode IN ('countdown', 'pomodoro')"),
}
"""The kind of a row's work, the column of its end, and the condition under which it is executed."""


def upgrade() -> None:
    op.create_table(
        "ended_work",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ended_work")),
    )
    for table, (kind, ended, executed) in _KINDS.items():
        op.execute(f"""
CREATE FUNCTION {table}_count_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ended_work (kind, status, number) VALUES ({kind}, NEW.status, 1);
    RETURN NULL;
END
$$;
CREATE TRIGGER {table}_count_end AFTER UPDATE OF status, {ended} ON {table} FOR EACH ROW
    WHEN (NEW.{ended} IS NOT NULL AND OLD.{ended} IS DISTINCT FROM NEW.{ended} AND {executed})
    EXECUTE FUNCTION {table}_count_end();
""")


def downgrade() -> None:
    for table in _KINDS:
        op.execute(f"DROP TRIGGER {table}_count_end ON {table}; DROP FUNCTION {table}_count_end()")
    op.drop_table("ended_work")
