"""Change sets keep requests that are proposed, in transactions that capture rows and are kept.

Operations over runs replay events, and end their open undos when they end.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0105"
down_revision = "0104"
branch_labels = None
depends_on = None

SOURCES = "ck_change_set_source"
ACTIONS = "ck_run_operation_ck_run_operation_action"
CLOSED = "ck_change_set_closed_without_request"

NUMBER = """
CREATE OR REPLACE FUNCTION workspace_event_number() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Nobody reads an event of a dry run: it takes no number that a reader of the log would miss.
    IF current_setting('workspace.dry_run', true) = 'on'{but_not} THEN
        NEW.seq := -1 - floor(random() * 9e18)::bigint;
        RETURN NEW;
    END IF;
    -- Once for each workspace a transaction tells of. Numbers it takes from here on are greater
    -- than the one in its lock, so a reader knows up to where the log is whole.
    IF current_setting('workspace.logged', true) IS DISTINCT FROM NEW.workspace_id::text THEN
        PERFORM set_config('workspace.logged', NEW.workspace_id::text, true);
        PERFORM pg_advisory_xact_lock_shared(
            hashtext(NEW.workspace_id::text),
            (
                coalesce(pg_sequence_last_value('workspace_event_number'::regclass), 0) & 2147483647
            )::integer
        );
        -- Whoever writes hears of it, and wakes the readers after the commit.
        RAISE NOTICE USING MESSAGE = 'workspace_event', DETAIL = NEW.workspace_id::text,
            ERRCODE = 'WS001';
    END IF;
    NEW.seq := nextval('workspace_event_number'::regclass);
    RETURN NEW;
END
$$;
"""
BUT_NOT_KEPT = """
        AND current_setting('workspace.kept', true) IS DISTINCT FROM 'on'"""


def upgrade() -> None:
    op.add_column("change_set", sa.Column("request", postgresql.JSONB(), nullable=True))
    op.add_column("change_set", sa.Column("sealed_request", sa.LargeBinary(), nullable=True))
    op.add_column("change_set", sa.Column("changes", postgresql.JSONB(), nullable=True))
    op.add_column("change_set", sa.Column("own_changes", postgresql.JSONB(), nullable=True))
    op.add_column("change_set", sa.Column("digest", sa.String(), nullable=True))
    op.drop_constraint(op.f(SOURCES), "change_set", type_="check")
    op.create_check_constraint(
        op.f(SOURCES), "change_set", "source IN ('model', 'rules', 'hand', 'request')"
    )
    op.create_check_constraint(
        op.f(CLOSED), "change_set", "sealed_request IS NULL OR completed_at IS NULL"
    )
    op.drop_constraint(op.f(ACTIONS), "run_operation", type_="check")
    op.create_check_constraint(
        op.f(ACTIONS), "run_operation", "action IN ('cancel', 'retry', 'resume', 'undo', 'replay')"
    )
    op.create_index(
        "ix_run_undo_operation_id",
        "run_undo",
        ["operation_id"],
        postgresql_where=sa.text("completed_at IS NULL AND operation_id IS NOT NULL"),
    )
    op.execute(
        "UPDATE run_undo SET stage = 'stopped', completed_at = run_operation.completed_at"
        " FROM run_operation WHERE run_operation.id = run_undo.operation_id"
        " AND run_undo.completed_at IS NULL AND run_operation.completed_at IS NOT NULL"
    )
    # The driver takes a statement as it is: SQLAlchemy would read `:` as a parameter.
    cursor = op.get_bind().connection.cursor()
    cursor.execute(NUMBER.format(but_not=BUT_NOT_KEPT))


def downgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    cursor.execute(NUMBER.format(but_not=""))
    op.drop_index("ix_run_undo_operation_id", table_name="run_undo")
    op.execute(
        "DELETE FROM run_operation_result USING run_operation"
        " WHERE run_operation.id = run_operation_result.operation_id AND action = 'replay'"
    )
    op.execute("DELETE FROM run_operation WHERE action = 'replay'")
    op.drop_constraint(op.f(ACTIONS), "run_operation", type_="check")
    op.create_check_constraint(
        op.f(ACTIONS), "run_operation", "action IN ('cancel', 'retry', 'resume', 'undo')"
    )
    op.execute("DELETE FROM change_set WHERE source = 'request'")
    op.drop_constraint(op.f(CLOSED), "change_set", type_="check")
    op.drop_constraint(op.f(SOURCES), "change_set", type_="check")
    op.create_check_constraint(op.f(SOURCES), "change_set", "source IN ('model', 'rules', 'hand')")
    for name in ("digest", "own_changes", "changes", "sealed_request", "request"):
        op.drop_column("change_set", name)
