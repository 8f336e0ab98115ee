"""saved run filters"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0074"
down_revision = "0073"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "saved_run_filter",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("owner_user_id", sa.Uuid(), nullable=True),
        sa.Column("automation_id", sa.Uuid(), nullable=True),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("query", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id", "automation_id"],
            ["automation.workspace_id", "automation.id"],
            name=op.f("fk_saved_run_filter_workspace_id_automation_id_automation"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id", "owner_user_id"],
            ["workspace_member.workspace_id", "workspace_member.user_id"],
            name=op.f("fk_saved_run_filter_workspace_id_owner_user_id_workspace_member"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"],
            ["workspace.id"],
            name=op.f("fk_saved_run_filter_workspace_id_workspace"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_saved_run_filter")),
    )
    op.create_index(
        "ix_saved_run_filter_automation_id",
        "saved_run_filter",
        ["automation_id"],
        unique=False,
        postgresql_where=sa.text("automation_id IS NOT NULL"),
    )
    op.create_index(
        "ix_saved_run_filter_workspace_id",
        "saved_run_filter",
        ["workspace_id", "owner_user_id"],
        unique=False,
    )


def downgrade() -> None:
    op.drop_index("ix_saved_run_filter_workspace_id", table_name="saved_run_filter")
    op.drop_index(
        "ix_saved_run_filter_automation_id",
        table_name="saved_run_filter",
        postgresql_where=sa.text("automation_id IS NOT NULL"),
    )
    op.drop_table("saved_run_filter")
