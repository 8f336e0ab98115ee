"""Webhook deliveries and secrets.

Revision ID: 0018
Revises: 0017
"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "workspace_secret",
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("sealed_value", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id"],
            ["workspace.id"],
            name=op.f("fk_workspace_secret_workspace_id_workspace"),
        ),
        sa.PrimaryKeyConstraint("workspace_id", "name", name=op.f("pk_workspace_secret")),
    )
    op.create_table(
        "webhook_receipt",
        sa.Column("automation_id", sa.Uuid(), nullable=False),
        sa.Column("key_hash", sa.LargeBinary(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id", "automation_id"],
            ["automation.workspace_id", "automation.id"],
            name=op.f("fk_webhook_receipt_workspace_id_automation_id_automation"),
        ),
        sa.PrimaryKeyConstraint("automation_id", "key_hash", name=op.f("pk_webhook_receipt")),
    )
    op.create_index(
        "ix_webhook_receipt_expires_at", "webhook_receipt", ["expires_at"], unique=False
    )
    op.add_column(
        "automation", sa.Column("sealed_previous_webhook_secret", sa.LargeBinary(), nullable=True)
    )
    op.add_column(
        "automation",
        sa.Column("previous_webhook_secret_until", sa.DateTime(timezone=True), nullable=True),
    )


def downgrade() -> None:
    op.drop_column("automation", "previous_webhook_secret_until")
    op.drop_column("automation", "sealed_previous_webhook_secret")
    op.drop_index("ix_webhook_receipt_expires_at", table_name="webhook_receipt")
    op.drop_table("webhook_receipt")
    op.drop_table("workspace_secret")
