"""The tables of each wing, and the triggers and functions that PostgreSQL keeps promises by.

Numbers are never used twice: by its number, a database of an earlier build is known (ADR 0073).
"""

from pathlib import Path

from alembic import op

revision = "0098"
down_revision = None
branch_labels = None
depends_on = None

STATEMENTS = Path(__file__).with_name("initial")
FILES = (
    "tables/runtime.sql",
    "tables/core.sql",
    "tables/people.sql",
    "tables/messages.sql",
    "tables/content.sql",
    "tables/data.sql",
    "tables/sources.sql",
    "tables/automation.sql",
    "tables/workspace.sql",
    "settings.sql",
    "triggers/status_transitions.sql",
    "triggers/record_counts.sql",
    "triggers/record_databases.sql",
    "triggers/record_creations.sql",
    "triggers/ended_runs.sql",
    "triggers/ended_work.sql",
    "triggers/workspace_log.sql",
    "triggers/logged_changes.sql",
)


def upgrade() -> None:
    # The driver takes a file as it is: SQLAlchemy would read `:` and `%` as parameters.
    cursor = op.get_bind().connection.cursor()
    for name in FILES:
        cursor.execute((STATEMENTS / name).read_text(encoding="utf-8"))


def downgrade() -> None:
    raise NotImplementedError("Nothing is before the initial migration: drop the database.")
