"""Resources of providers that were imported."""

import sqlalchemy as sa
from alembic import op

revision = "0049"
down_revision = "0048"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "imported_resource",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("connection_id", sa.Uuid(), nullable=False),
        sa.Column("root_id", sa.Uuid(), nullable=False),
        sa.Column("parent_id", sa.Uuid(), nullable=True),
        sa.Column("external_type", sa.String(), nullable=False),
        sa.Column("external_id", sa.String(), nullable=False),
        sa.Column("resource_name", sa.String(), nullable=False),
        sa.Column("mime_type", sa.String(), nullable=True),
        sa.Column("offered_revision", sa.String(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("item_id", sa.Uuid(), nullable=True),
        sa.Column("item_title", sa.String(), nullable=True),
        sa.Column("revision", sa.String(), nullable=True),
        sa.Column("digest", sa.String(), nullable=True),
        sa.Column("local_state", sa.String(), nullable=True),
        sa.Column("run_id", sa.Uuid(), nullable=True),
        sa.Column("seen_by", sa.Uuid(), nullable=False),
        sa.Column("pending", sa.Boolean(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.CheckConstraint(
            "kind IN ('folder', 'page', 'file', 'database')",
            name=op.f("ck_imported_resource_kind"),
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"],
            ["workspace.id"],
            name=op.f("fk_imported_resource_workspace_id_workspace"),
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id", "root_id"],
            ["imported_resource.workspace_id", "imported_resource.id"],
            name=op.f("fk_imported_resource_workspace_id_root_id_imported_resource"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id", "item_id"],
            ["item.workspace_id", "item.id"],
            name=op.f("fk_imported_resource_workspace_id_item_id_item"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_imported_resource")),
        sa.UniqueConstraint(
            "workspace_id", "id", name=op.f("uq_imported_resource_workspace_id_id")
        ),
    )
    op.create_index(
        "uq_imported_resource_root_id_external_id",
        "imported_resource",
        ["root_id", "external_id"],
        unique=True,
    )
    op.create_index("ix_imported_resource_item_id", "imported_resource", ["item_id"])
    op.create_index(
        "ix_imported_resource_pending",
        "imported_resource",
        ["root_id", "id"],
        postgresql_where=sa.text("pending"),
    )
    op.create_index(
        "ix_imported_resource_of_connection",
        "imported_resource",
        ["workspace_id", "connection_id", "external_id"],
        postgresql_where=sa.text("root_id = id"),
    )


def downgrade() -> None:
    op.drop_table("imported_resource")
