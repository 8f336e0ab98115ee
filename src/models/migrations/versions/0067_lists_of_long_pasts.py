"""Lists of deliveries and notifications that a long past makes no slower."""

import sqlalchemy as sa
from alembic import op

revision = "0067"
down_revision = "0066"
branch_labels = None
depends_on = None

ORDER = ["user_id", "workspace_id", "created_at", "id"]
KEPT = sa.text("archived_at IS NULL")
UNREAD = sa.text("read_at IS NULL AND archived_at IS NULL")


def upgrade() -> None:
    op.create_index(
        "ix_delivery_ended",
        "delivery",
        ["workspace_id", "target_id", "status", "created_at", "id"],
        postgresql_where=sa.text("status NOT IN ('pending')"),
    )
    op.drop_index("ix_notification_user_id_created_at_id", "notification")
    op.drop_index("ix_notification_unread", "notification")
    op.create_index("ix_notification_all", "notification", ORDER)
    op.create_index("ix_notification_kept", "notification", ORDER, postgresql_where=KEPT)
    op.create_index("ix_notification_unread", "notification", ORDER, postgresql_where=UNREAD)


def downgrade() -> None:
    for name in ("all", "kept", "unread"):
        op.drop_index(f"ix_notification_{name}", "notification")
    op.create_index(
        "ix_notification_unread",
        "notification",
        ["user_id", "workspace_id", "id"],
        postgresql_where=UNREAD,
    )
    op.create_index(
        "ix_notification_user_id_created_at_id", "notification", ["user_id", "created_at", "id"]
    )
    op.drop_index("ix_delivery_ended", "delivery")
