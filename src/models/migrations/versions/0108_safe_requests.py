"""The log of requests tells the ones that change nothing, which the audit log leaves out."""

import sqlalchemy as sa
from alembic import op

revision = "0108"
down_revision = "0107"
branch_labels = None
depends_on = None

INDEX = "ix_request_log_changes"
UNSAFE = "method NOT IN ('GET', 'HEAD', 'OPTIONS')"


def upgrade() -> None:
    flag = sa.Column("safe", sa.Boolean, server_default=sa.text("false"), nullable=False)
    op.add_column("request_log", flag)
    op.execute("UPDATE request_log SET safe = true WHERE dry_run")
    _index(f"{UNSAFE} AND NOT safe")


def downgrade() -> None:
    _index(UNSAFE)
    op.drop_column("request_log", "safe")


def _index(condition: str) -> None:
    op.drop_index(INDEX, "request_log")
    columns = ["workspace_id", "created_at", "id"]
    op.create_index(INDEX, "request_log", columns, postgresql_where=sa.text(condition))
