"""Authorizations, and the providers whose resources are read."""

import sqlalchemy as sa
from alembic import op

revision = '0042'
down_revision = '0041'
branch_labels = None
depends_on = None

BEFORE = "provider IN ('demo', 'http', 'postgresql', 'mysql', 'sqlite')"
AFTER = (
    "provider IN ('demo', 'http', 'postgresql', 'mysql', 'sqlite', 'webdav', 's3', 'sftp', 'github',"
    " 'notion', 'airtable', 'google_drive')"
)
NEW = "('webdav', 's3', 'sftp', 'github', 'notion', 'airtable', 'google_drive')"


def upgrade() -> None:
    _allow(AFTER)
    op.create_table(
        'oauth_authorization',
        sa.Column('id', sa.Uuid(), nullable=False),
        sa.Column('workspace_id', sa.Uuid(), nullable=False),
        sa.Column('user_id', sa.Uuid(), nullable=False),
        sa.Column('provider', sa.String(), nullable=False),
        sa.Column('connection_id', sa.Uuid(), nullable=True),
        sa.Column('label', sa.String(), nullable=False),
        sa.Column('shared', sa.Boolean(), nullable=False),
        sa.Column('state_digest', sa.LargeBinary(), nullable=False),
        sa.Column('sealed', sa.LargeBinary(), nullable=False),
        sa.Column('redirect_uri', sa.String(), nullable=False),
        sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
        sa.Column('expires_at', sa.DateTime(timezone=True), nullable=False),
        sa.Column('returned_at', sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(['workspace_id'], ['workspace.id'], name=op.f('fk_oauth_authorization_workspace_id_workspace')),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_oauth_authorization')),
        sa.UniqueConstraint('state_digest', name=op.f('uq_oauth_authorization_state_digest')),
    )
    op.create_index('ix_oauth_authorization_expires_at', 'oauth_authorization', ['expires_at'])


def downgrade() -> None:
    op.drop_table('oauth_authorization')
    op.execute(f"DELETE FROM connection WHERE provider IN {NEW}")
    _allow(BEFORE)


def _allow(providers: str) -> None:
    op.drop_constraint(op.f("ck_connection_provider"), "connection", type_="check")
    op.create_check_constraint(op.f("ck_connection_provider"), "connection", providers)
