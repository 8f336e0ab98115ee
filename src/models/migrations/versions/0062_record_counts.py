"""The number of records of a database, kept by triggers.

Revision ID: 0062
Revises: 0061
"""

import sqlalchemy as sa
from alembic import op

revision = "0062"
down_revision = "0061"
branch_labels = None
depends_on = None

COUNT = """CREATE FUNCTION count_records() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO record_count (database_id, number)
        SELECT database_id, count(*) FROM after_rows WHERE deleted_at IS NULL GROUP BY database_id;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO record_count (database_id, number)
        SELECT database_id, -count(*) FROM before_rows WHERE deleted_at IS NULL GROUP BY database_id;
    ELSE
        INSERT INTO record_count (database_id, number)
        SELECT database_id, sum(change) FROM (
            SELECT database_id, 1 AS change FROM after_rows WHERE deleted_at IS NULL
            UNION ALL
            SELECT database_id, -1 FROM before_rows WHERE deleted_at IS NULL
        ) AS changed
        GROUP BY database_id HAVING sum(change) <> 0;
    END IF;
    RETURN NULL;
END
$body$"""

TRIGGERS = {
    "inserted": ("INSERT", "NEW TABLE AS after_rows"),
    "updated": ("UPDATE", "OLD TABLE AS before_rows NEW TABLE AS after_rows"),
    "deleted": ("DELETE", "OLD TABLE AS before_rows"),
}


def upgrade() -> None:
    op.create_table(
        "record_count",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("database_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_record_count"),
    )
    op.create_index("ix_record_count_database_id", "record_count", ["database_id"])
    op.execute(COUNT)
    # A trigger is made under a lock that keeps writers out until the records there are counted.
    for name, (change, rows) in TRIGGERS.items():
        op.execute(
            f"CREATE TRIGGER count_{name} AFTER {change} ON record REFERENCING {rows}"
            " FOR EACH STATEMENT EXECUTE FUNCTION count_records()"
        )
    op.execute(
        "INSERT INTO record_count (database_id, number)"
        " SELECT database_id, count(*) FROM record WHERE deleted_at IS NULL GROUP BY database_id"
    )


def downgrade() -> None:
    for name in TRIGGERS:
        op.execute(f"DROP TRIGGER count_{name} ON record")
    op.execute("DROP FUNCTION count_records()")
    op.drop_table("record_count")
