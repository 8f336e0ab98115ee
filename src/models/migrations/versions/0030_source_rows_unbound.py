"""Rows of sources refer to their records without a constraint: writers pay for no look at each."""

from alembic import op

revision = '0030'
down_revision = '0029'
branch_labels = None
depends_on = None

CONSTRAINT = 'fk_source_row_workspace_id_record_id_record'


def upgrade() -> None:
    op.drop_constraint(CONSTRAINT, 'source_row', type_='foreignkey')


def downgrade() -> None:
    op.create_foreign_key(
        CONSTRAINT, 'source_row', 'record',
        ['workspace_id', 'record_id'], ['workspace_id', 'id'], ondelete='CASCADE',
    )
