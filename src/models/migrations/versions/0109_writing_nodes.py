"""The history of a record names the node that made a change; dry runs outlive an ANALYZE."""

import sqlalchemy as sa
from alembic import op

revision = "0109"
down_revision = "0108"
branch_labels = None
depends_on = None

WRITE_CREATION = """
CREATE OR REPLACE FUNCTION write_creation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO record_change
        (id, workspace_id, database_id, record_id, kind, actor_user_id, principal_type, run_id,
        after, at, written_at{column})
    VALUES
        (OLD.id, OLD.workspace_id, OLD.database_id, OLD.id, 'created', OLD.created_by_user_id,
        OLD.creation_principal_type, OLD.creation_run_id,
        jsonb_build_object('title', OLD.title) || OLD.data, OLD.created_at, now(){value});
    NEW.creation_principal_type := NULL;
    NEW.creation_run_id := NULL;{reset}
    RETURN NEW;
END
$$
"""

# PostgreSQL looks the type `record%ROWTYPE` up again when the table was analyzed or altered, by its
# last name alone, which is that of the pseudo-type `record`.
CAPTURE = """
CREATE OR REPLACE FUNCTION capture_dry_run_record() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    written {type};
BEGIN
    IF TG_OP = 'INSERT' THEN
        written := NEW;
    ELSE
        written := OLD;
    END IF;
    INSERT INTO dry_run_change
        (transaction_id, source, subject, workspace_id, place, place_id, before, after)
    VALUES (
        pg_current_xact_id()::text::bigint, 'record', written.id, written.workspace_id,
        'database', written.database_id,
        CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(written) END,
        CASE WHEN TG_OP <> 'DELETE' THEN '{{}}'::jsonb END
    );
    RETURN NULL;
END
$$
"""


def upgrade() -> None:
    op.add_column("record", sa.Column("creation_node_id", sa.String(), nullable=True))
    op.add_column("record_change", sa.Column("node_id", sa.String(), nullable=True))
    op.execute(
        WRITE_CREATION.format(
            column=", node_id",
            value=", OLD.creation_node_id",
            reset="\n    NEW.creation_node_id := NULL;",
        )
    )
    op.execute(CAPTURE.format(type="record"))


def downgrade() -> None:
    op.execute(CAPTURE.format(type="record%ROWTYPE"))
    op.execute(WRITE_CREATION.format(column="", value="", reset=""))
    op.drop_column("record_change", "node_id")
    op.drop_column("record", "creation_node_id")
