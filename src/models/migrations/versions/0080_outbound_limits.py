"""Limits of calls of outside servers: the places, and the calls in their lines (ADR 0099)."""

import sqlalchemy as sa
from alembic import op

revision = "0080"
down_revision = "0079"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "outbound_place",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("host", sa.String(), nullable=True),
        sa.Column("connection_id", sa.Uuid(), nullable=True),
        sa.Column("per_second", sa.Float(), nullable=True),
        sa.Column("at_once", sa.Integer(), nullable=True),
        sa.Column("next_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("free_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("paused_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "(host IS NULL) <> (connection_id IS NULL)", name=op.f("ck_outbound_place_one_place")
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id", "connection_id"],
            ["connection.workspace_id", "connection.id"],
            name=op.f("fk_outbound_place_workspace_id_connection_id_connection"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"],
            ["workspace.id"],
            name=op.f("fk_outbound_place_workspace_id_workspace"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbound_place")),
    )
    op.create_index(
        "uq_outbound_place_connection_id",
        "outbound_place",
        ["workspace_id", "connection_id"],
        unique=True,
        postgresql_where=sa.text("connection_id IS NOT NULL"),
    )
    op.create_index(
        "uq_outbound_place_host",
        "outbound_place",
        ["workspace_id", "host"],
        unique=True,
        postgresql_where=sa.text("host IS NOT NULL"),
    )
    op.create_table(
        "outbound_call",
        sa.Column("call_key", sa.String(), nullable=False),
        sa.Column("place_id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("work_id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("execution", sa.String(), nullable=True),
        sa.Column("entered_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("go_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("gone", sa.Boolean(), nullable=False),
        sa.Column("back_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ends_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["place_id"],
            ["outbound_place.id"],
            name=op.f("fk_outbound_call_place_id_outbound_place"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("call_key", "place_id", name=op.f("pk_outbound_call")),
    )
    op.create_index(
        "ix_outbound_call_line", "outbound_call", ["place_id", "position"], unique=False
    )
    op.create_index("ix_outbound_call_work_id", "outbound_call", ["work_id"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_outbound_call_work_id", table_name="outbound_call")
    op.drop_index("ix_outbound_call_line", table_name="outbound_call")
    op.drop_table("outbound_call")
    op.drop_index(
        "uq_outbound_place_host",
        table_name="outbound_place",
        postgresql_where=sa.text("host IS NOT NULL"),
    )
    op.drop_index(
        "uq_outbound_place_connection_id",
        table_name="outbound_place",
        postgresql_where=sa.text("connection_id IS NOT NULL"),
    )
    op.drop_table("outbound_place")
