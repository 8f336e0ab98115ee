"""A row of the outbox holds a request.

Revision ID: 0022
Revises: 0021
"""

from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.alter_column("outbox", "facts", new_column_name="request")


def downgrade() -> None:
    op.alter_column("outbox", "request", new_column_name="facts")
