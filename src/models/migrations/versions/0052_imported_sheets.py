"""The sheets of imported workbooks."""

import sqlalchemy as sa
from alembic import op

revision = "0052"
down_revision = "0051"
branch_labels = None
depends_on = None

INDEX = "uq_imported_resource_root_id_external_id"
TABLE = "imported_resource"


def upgrade() -> None:
    op.add_column(TABLE, sa.Column("sheet_name", sa.String(), nullable=True))
    op.drop_index(INDEX, TABLE)
    op.create_index(
        INDEX,
        TABLE,
        ["root_id", "external_id", "sheet_name"],
        unique=True,
        postgresql_nulls_not_distinct=True,
    )


def downgrade() -> None:
    op.execute("DELETE FROM imported_resource WHERE sheet_name IS NOT NULL")
    op.drop_index(INDEX, TABLE)
    op.create_index(INDEX, TABLE, ["root_id", "external_id"], unique=True)
    op.drop_column(TABLE, "sheet_name")
