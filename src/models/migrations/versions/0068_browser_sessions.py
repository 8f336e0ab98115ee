"""Sessions of people in a browser, and the links that begin one."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0068"
down_revision = "0067"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "browser_session",
        sa.Column("digest", postgresql.BYTEA(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["app_user.id"],
            name="fk_browser_session_user_id_app_user",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("digest", name="pk_browser_session"),
    )
    op.create_index("ix_browser_session_user_id", "browser_session", ["user_id"])
    op.create_index("ix_browser_session_last_used_at", "browser_session", ["last_used_at"])
    op.create_table(
        "sign_in_link",
        sa.Column("digest", postgresql.BYTEA(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["app_user.id"],
            name="fk_sign_in_link_user_id_app_user",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("digest", name="pk_sign_in_link"),
    )
    op.create_index("ix_sign_in_link_user_id", "sign_in_link", ["user_id"])
    op.create_index("ix_sign_in_link_expires_at", "sign_in_link", ["expires_at"])


def downgrade() -> None:
    op.drop_table("sign_in_link")
    op.drop_table("browser_session")
