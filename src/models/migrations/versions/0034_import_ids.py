"""What became of the rows of bundles.

Revision ID: 0034
Revises: 0033
"""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('import_id_map',
    sa.Column('run_id', sa.Uuid(), nullable=False),
    sa.Column('entry_id', sa.Uuid(), nullable=False),
    sa.Column('source_id', sa.Uuid(), nullable=False),
    sa.Column('source_kind', sa.String(), nullable=False),
    sa.Column('target_id', sa.Uuid(), nullable=False),
    sa.PrimaryKeyConstraint('entry_id', 'source_id', 'source_kind', name=op.f('pk_import_id_map'))
    )
    op.create_index('ix_import_id_map_entry_id_source_kind_target_id', 'import_id_map', ['entry_id', 'source_kind', 'target_id'], unique=False)
    op.create_index('ix_import_id_map_run_id', 'import_id_map', ['run_id'], unique=False)


def downgrade() -> None:
    op.drop_table("import_id_map")
