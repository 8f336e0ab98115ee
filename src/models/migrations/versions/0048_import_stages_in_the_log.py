"""The log of a workspace tells how far its import is.

Revision ID: 0048
Revises: 0047
"""

from alembic import op

revision = "0048"
down_revision = "0047"
branch_labels = None
depends_on = None

STAGE = """CREATE FUNCTION log_import_stage() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    PERFORM tell_workspace(
        NEW.target_workspace_id, 'import.stage', NULL, jsonb_build_object(
            'importRunId', NEW.run_id, 'entryId', NEW.id, 'stage', NEW.stage
        )
    );
    RETURN NULL;
END
$body$"""


def upgrade() -> None:
    op.execute(STAGE)
    op.execute(
        "CREATE TRIGGER log_import_stage AFTER UPDATE OF stage ON legacy_import_workspace"
        " FOR EACH ROW WHEN (NEW.target_workspace_id IS NOT NULL AND NEW.stage <> OLD.stage)"
        " EXECUTE FUNCTION log_import_stage()"
    )


def downgrade() -> None:
    op.execute("DROP TRIGGER log_import_stage ON legacy_import_workspace")
    op.execute("DROP FUNCTION log_import_stage")
