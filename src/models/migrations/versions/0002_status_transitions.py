"""The database refuses status changes that the transition tables do not allow.

Revision ID: 0002
Revises: 0001
"""

from alembic import op

from models.migrations.triggers import create_status_trigger, drop_status_trigger

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# Copied from models.automation.automation_runs.rules as of this revision: a migration never changes.
_RUN_ENDS = ("failed", "cancelled", "timed_out")
_RUN = {
    "queued": ("running", *_RUN_ENDS),
    "running": ("waiting", "succeeded", *_RUN_ENDS),
    "waiting": ("running", "succeeded", *_RUN_ENDS),
}
_NODE_ENDS = ("succeeded", "failed", "cancelled")
_NODE = {
    "queued": ("running", "waiting", "skipped", *_NODE_ENDS),
    "running": ("waiting", *_NODE_ENDS),
    "waiting": ("running", *_NODE_ENDS),
}


def upgrade() -> None:
    for table, transitions in (("automation_run", _RUN), ("node_run", _NODE)):
        for statement in create_status_trigger(table, transitions):
            op.execute(statement)


def downgrade() -> None:
    for table in ("automation_run", "node_run"):
        for statement in drop_status_trigger(table):
            op.execute(statement)
