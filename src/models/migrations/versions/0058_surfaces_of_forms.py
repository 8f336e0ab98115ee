"""Every form has a surface.

Revision ID: 0058
Revises: 0057
"""

from alembic import op

revision = "0058"
down_revision = "0057"
branch_labels = None
depends_on = None

BEFORE = "kind IN ('page', 'note', 'canvas', 'dashboard', 'record')"
AFTER = "kind IN ('page', 'note', 'canvas', 'dashboard', 'form', 'record')"


def upgrade() -> None:
    _allow(AFTER)
    op.execute(
        "INSERT INTO surface (id, workspace_id, item_id, kind, created_at, updated_at)"
        " SELECT uuidv7(), workspace_id, item_id, 'form', created_at, updated_at FROM form"
    )


def downgrade() -> None:
    op.execute("DELETE FROM surface WHERE kind = 'form'")
    _allow(BEFORE)


def _allow(kinds: str) -> None:
    op.drop_constraint(op.f("ck_surface_kind"), "surface", type_="check")
    op.create_check_constraint(op.f("ck_surface_kind"), "surface", kinds)
