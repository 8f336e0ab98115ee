"""Runs that begin and succeed in one write."""

from alembic import op

revision = "0103"
down_revision = "0102"
branch_labels = None
depends_on = None

_FUNCTION = """
CREATE OR REPLACE FUNCTION automation_run_status_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status = OLD.status
        OR (OLD.status = 'queued' AND NEW.status IN ({from_queued}))
        OR (OLD.status = 'running' AND NEW.status IN (
            'cancelled', 'failed', 'succeeded', 'timed_out', 'waiting'
        ))
        OR (OLD.status = 'waiting' AND NEW.status IN (
            'cancelled', 'failed', 'running', 'succeeded', 'timed_out'
        ))
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'status of automation_run cannot change from % to %', OLD.status, NEW.status
        USING ERRCODE = '23514', TABLE = 'automation_run',
            CONSTRAINT = 'automation_run_status_transition';
END
$$
"""


def upgrade() -> None:
    op.execute(
        _FUNCTION.format(from_queued="'cancelled', 'failed', 'running', 'succeeded', 'timed_out'")
    )


def downgrade() -> None:
    op.execute(_FUNCTION.format(from_queued="'cancelled', 'failed', 'running', 'timed_out'"))
