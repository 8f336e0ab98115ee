"""The experiment that shares the runs of an automation out between its versions.

Revision ID: 0039
Revises: 0038
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0039'
down_revision = '0038'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('automation', sa.Column('canary', postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True))
    op.create_index('ix_automation_canary', 'automation', ['id'], unique=False, postgresql_where=sa.text('canary IS NOT NULL'))


def downgrade() -> None:
    op.drop_column('automation', 'canary')
