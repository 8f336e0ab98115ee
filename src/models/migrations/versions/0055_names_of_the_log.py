"""The log of a workspace and what reads it, by their names.

Revision ID: 0055
Revises: 0054
"""

from alembic import op

revision = "0055"
down_revision = "0054"
branch_labels = None
depends_on = None

_ARGUMENTS = "(uuid, text, uuid, jsonb, uuid)"


def upgrade() -> None:
    op.alter_column("webhook_endpoint", "told_until", new_column_name="log_position")
    op.execute(f"ALTER FUNCTION tell_workspace{_ARGUMENTS} RENAME TO append_workspace_event")
    _replace("tell_workspace(", "append_workspace_event(")
    _replace("workspace.telling", "workspace.logged")


def downgrade() -> None:
    _replace("workspace.logged", "workspace.telling")
    _replace("append_workspace_event(", "tell_workspace(")
    op.execute(f"ALTER FUNCTION append_workspace_event{_ARGUMENTS} RENAME TO tell_workspace")
    op.alter_column("webhook_endpoint", "log_position", new_column_name="told_until")


def _replace(old: str, new: str) -> None:
    """Write a name anew in every function that has it: triggers, and what they call."""
    op.execute(
        f"""DO $$
DECLARE
    one regprocedure;
BEGIN
    FOR one IN SELECT oid FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace AND strpos(prosrc, '{old}') > 0
    LOOP
        EXECUTE replace(pg_get_functiondef(one), '{old}', '{new}');
    END LOOP;
END
$$"""
    )
