"""The plan of a workspace, and the worker processes that are there.

Revision ID: 0045
Revises: 0044
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0045'
down_revision = '0044'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('worker_process',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('host', sa.String(), nullable=False),
    sa.Column('pid', sa.Integer(), nullable=False),
    sa.Column('queues', postgresql.ARRAY(sa.Text()), nullable=False),
    sa.Column('started_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('seen_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_worker_process'))
    )
    op.add_column('workspace', sa.Column('plan', sa.String(), server_default='free', nullable=False))
    op.execute(
        "ALTER TABLE workspace ADD CONSTRAINT ck_workspace_plan"
        " CHECK (plan IN ('free', 'team', 'business', 'enterprise'))"
    )


def downgrade() -> None:
    op.drop_column('workspace', 'plan')
    op.drop_table('worker_process')
