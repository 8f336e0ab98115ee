"""The demo provider."""

from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

BEFORE = "provider IN ('http', 'postgresql', 'mysql', 'sqlite')"
AFTER = "provider IN ('demo', 'http', 'postgresql', 'mysql', 'sqlite')"


def upgrade() -> None:
    _allow(AFTER)


def downgrade() -> None:
    op.execute("DELETE FROM connection WHERE provider = 'demo'")
    _allow(BEFORE)


def _allow(providers: str) -> None:
    op.drop_constraint(op.f("ck_connection_provider"), "connection", type_="check")
    op.create_check_constraint(op.f("ck_connection_provider"), "connection", providers)
