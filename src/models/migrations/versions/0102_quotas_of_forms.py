"""Quotas of forms."""

import sqlalchemy as sa
from alembic import op

revision = "0102"
down_revision = "0101"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "form_quota",
        sa.Column("form_id", sa.Uuid(), nullable=False),
        sa.Column("address", sa.LargeBinary(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("full_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id", "form_id"],
            ["form.workspace_id", "form.id"],
            name=op.f("fk_form_quota_workspace_id_form_id_form"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("form_id", "address", name=op.f("pk_form_quota")),
    )
    op.create_index("ix_form_quota_full_at", "form_quota", ["full_at"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_form_quota_full_at", table_name="form_quota")
    op.drop_table("form_quota")
