"""Tables and columns of automations are named for what they hold.

Revision ID: 0023
Revises: 0022
"""

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

_TABLES = (
    ("trigger_burst", "debounced_change"),
    ("resting_execution", "suspended_execution"),
)
_COLUMNS = (
    ("automation_subscription", "look_at", "next_poll_at"),
    ("automation_subscription", "reached_at", "polled_until"),
    ("run_wait", "said", "responses"),
    ("suspended_execution", "place", "execution_key"),
    ("suspended_execution", "below", "child_keys"),
)
_INDEXES = (
    ("ix_trigger_burst_due_at", "ix_debounced_change_due_at"),
    ("ix_resting_execution_run_id", "ix_suspended_execution_run_id"),
    ("ix_automation_subscription_look_at", "ix_automation_subscription_next_poll_at"),
    ("ix_automation_subscription_listens", "ix_automation_subscription_subject"),
)
_CONSTRAINTS = (
    ("debounced_change", "pk_trigger_burst", "pk_debounced_change"),
    (
        "debounced_change",
        "fk_trigger_burst_workspace_id_automation_id_automation",
        "fk_debounced_change_workspace_id_automation_id_automation",
    ),
    ("suspended_execution", "pk_resting_execution", "pk_suspended_execution"),
    (
        "suspended_execution",
        "fk_resting_execution_workspace_id_run_id_automation_run",
        "fk_suspended_execution_workspace_id_run_id_automation_run",
    ),
)


def upgrade() -> None:
    for old, new in _TABLES:
        op.rename_table(old, new)
    for table, old, new in _COLUMNS:
        op.alter_column(table, old, new_column_name=new)
    for old, new in _INDEXES:
        op.execute(f"ALTER INDEX {old} RENAME TO {new}")
    for table, old, new in _CONSTRAINTS:
        op.execute(f"ALTER TABLE {table} RENAME CONSTRAINT {old} TO {new}")


def downgrade() -> None:
    for table, old, new in _CONSTRAINTS:
        op.execute(f"ALTER TABLE {table} RENAME CONSTRAINT {new} TO {old}")
    for old, new in _INDEXES:
        op.execute(f"ALTER INDEX {new} RENAME TO {old}")
    for table, old, new in _COLUMNS:
        op.alter_column(table, new, new_column_name=old)
    for old, new in _TABLES:
        op.rename_table(new, old)
