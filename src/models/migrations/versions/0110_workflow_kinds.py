"""The kind of a workflow is called so where it is stored, too."""

from alembic import op

revision = "0110"
down_revision = "0109"
branch_labels = None
depends_on = None

TABLES = ("outbox", "job", "resting_intent")
INDEX = "ix_job_workspace_id_{}_subject_id"

COUNTING = """
CREATE OR REPLACE FUNCTION job_count_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ended_work (kind, status, number) VALUES (NEW.{}, NEW.status, 1);
    RETURN NULL;
END
$$
"""


def upgrade() -> None:
    _rename("family", "workflow_kind")


def downgrade() -> None:
    _rename("workflow_kind", "family")


def _rename(before: str, after: str) -> None:
    for table in TABLES:
        op.alter_column(table, before, new_column_name=after)
    op.execute(f"ALTER INDEX {INDEX.format(before)} RENAME TO {INDEX.format(after)}")
    op.execute(COUNTING.format(after))
