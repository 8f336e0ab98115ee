"""The secret keys that a database was written under, and those of digests (ADR 0135).

The first process that starts afterwards records its own; a migration does not know any.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0095"
down_revision = "0094"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "secret_key",
        sa.Column("id", postgresql.BYTEA(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_secret_key")),
        sa.UniqueConstraint("position", name=op.f("uq_secret_key_position")),
    )
    op.add_column("api_key", sa.Column("digest_key", postgresql.BYTEA(), nullable=True))
    op.add_column("share_link", sa.Column("digest_key", postgresql.BYTEA(), nullable=True))


def downgrade() -> None:
    op.drop_column("share_link", "digest_key")
    op.drop_column("api_key", "digest_key")
    op.drop_table("secret_key")
