"""Mounts that are kept in step with their providers."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)


def columns() -> list[sa.Column[Any]]:
    return [
        sa.Column("root_mount_id", sa.Uuid(), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("vanished_at", MOMENT, nullable=True),
        sa.Column("seen_by", sa.Uuid(), nullable=True),
        sa.Column("pending", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("sync_job_id", sa.Uuid(), nullable=True),
        sa.Column("synced_revision", sa.String(), nullable=True),
        sa.Column("entries", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("truncated", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("next_run_at", MOMENT, nullable=True),
        sa.Column("skipped_fires", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("missed_fires", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("created_by_user_id", sa.Uuid(), nullable=True),
    ]


ROOT = "fk_mount_workspace_id_root_mount_id_mount"


def upgrade() -> None:
    for column in columns():
        op.add_column("mount", column)
    op.add_column("mount", sa.Column("external_id", sa.String(), nullable=True))
    op.execute("UPDATE mount SET external_id = resource->>'externalId'")
    op.alter_column("mount", "external_id", nullable=False)
    op.create_foreign_key(
        ROOT,
        "mount",
        "mount",
        ["workspace_id", "root_mount_id"],
        ["workspace_id", "id"],
        ondelete="CASCADE",
    )
    op.create_index(
        "uq_mount_entry",
        "mount",
        ["root_mount_id", "external_id"],
        unique=True,
        postgresql_where=sa.text("root_mount_id IS NOT NULL"),
    )
    op.create_index(
        "ix_mount_pending",
        "mount",
        ["root_mount_id", "id"],
        postgresql_where=sa.text("pending"),
    )
    op.create_index(
        "ix_mount_resource",
        "mount",
        ["workspace_id", "connection_id", "external_id"],
        postgresql_where=sa.text("root_mount_id IS NULL"),
    )


def downgrade() -> None:
    op.drop_index("ix_mount_resource", "mount")
    op.drop_index("ix_mount_pending", "mount")
    op.drop_index("uq_mount_entry", "mount")
    op.drop_constraint(ROOT, "mount", type_="foreignkey")
    op.drop_column("mount", "external_id")
    for column in reversed(columns()):
        op.drop_column("mount", column.name)
