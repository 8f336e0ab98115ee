"""Providers switched off, the mirror of what they answered, and choices for OAuth clients."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "provider_switch",
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("provider", sa.String(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id"],
            ["workspace.id"],
            name=op.f("fk_provider_switch_workspace_id_workspace"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("workspace_id", "provider", name=op.f("pk_provider_switch")),
    )
    op.create_table(
        "resource_mirror",
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("connection_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("revision", sa.String(), nullable=True),
        sa.Column("answer", postgresql.JSONB(), nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id", "connection_id"],
            ["connection.workspace_id", "connection.id"],
            name=op.f("fk_resource_mirror_workspace_id_connection_id_connection"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "workspace_id",
            "connection_id",
            "user_id",
            "digest",
            name=op.f("pk_resource_mirror"),
        ),
        prefixes=["UNLOGGED"],
    )
    op.create_index("ix_resource_mirror_expires_at", "resource_mirror", ["expires_at"])
    op.create_table(
        "oauth_client_choice",
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("oauth_client_id", sa.String(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["app_user.id"],
            name=op.f("fk_oauth_client_choice_user_id_app_user"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"],
            ["workspace.id"],
            name=op.f("fk_oauth_client_choice_workspace_id_workspace"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("user_id", "oauth_client_id", name=op.f("pk_oauth_client_choice")),
    )
    op.create_index(
        "ix_oauth_client_choice_workspace_id", "oauth_client_choice", ["workspace_id"]
    )


def downgrade() -> None:
    op.drop_table("oauth_client_choice")
    op.drop_table("resource_mirror")
    op.drop_table("provider_switch")
