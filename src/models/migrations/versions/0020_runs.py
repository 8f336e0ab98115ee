"""Lines for slots and for starts; and lists in the order in which runs were asked for, which
derived ids do not have.

Revision ID: 0020
Revises: 0019
"""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

_OPEN = "status IN ('queued', 'running', 'waiting')"
_KEY_ORDER = ["automation_id", "concurrency_key", "created_at", "id"]


def upgrade() -> None:
    op.drop_index("ix_automation_run_concurrency", table_name="automation_run")
    op.drop_index("ix_automation_run_automation_id_id", table_name="automation_run")
    for owner in ("automation_id", "workspace_id"):
        op.create_index(
            f"ix_automation_run_{owner}_created_at", "automation_run", [owner, "created_at", "id"]
        )
    for name, admitted in (("holding", "IS NOT NULL"), ("waiting", "IS NULL")):
        op.create_index(
            f"ix_automation_run_{name}",
            "automation_run",
            _KEY_ORDER,
            postgresql_where=sa.text(
                f"concurrency_key IS NOT NULL AND admitted_at {admitted} AND {_OPEN}"
            ),
        )
    op.drop_index("ix_outbox_workspace_id_id", table_name="outbox")
    op.create_index(
        "ix_outbox_line",
        "outbox",
        ["workspace_id", "intent", sa.text("coalesce(facts ->> 'priority', '3')"), "id"],
    )


def downgrade() -> None:
    op.drop_index("ix_outbox_line", table_name="outbox")
    op.create_index("ix_outbox_workspace_id_id", "outbox", ["workspace_id", "id"])
    for name in ("holding", "waiting"):
        op.drop_index(f"ix_automation_run_{name}", table_name="automation_run")
    for owner in ("automation_id", "workspace_id"):
        op.drop_index(f"ix_automation_run_{owner}_created_at", table_name="automation_run")
    op.create_index("ix_automation_run_automation_id_id", "automation_run", ["automation_id", "id"])
    op.create_index(
        "ix_automation_run_concurrency",
        "automation_run",
        ["automation_id", "concurrency_key", "id"],
        postgresql_where=sa.text(f"concurrency_key IS NOT NULL AND {_OPEN}"),
    )
