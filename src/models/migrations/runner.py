"""Bring a database to the newest schema, and say where one stands."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, text

from runtime.database import driver_url

LOCK = 7_020_011
"""The advisory lock that lets one process migrate at a time."""

SCRIPTS = Path(__file__).parent

TAKEN_OVER, INITIAL = "0097", "0098"
"""Two revisions of one schema: the last before the initial migration was made anew, and that."""


class UnknownRevisionError(Exception):
    """The database was migrated by a build whose migrations this one does not have."""

    retryable = False

    def __init__(self, revision: str) -> None:
        super().__init__(
            f"The database is at revision {revision}, which this build does not have: a newer build"
            " made it, or one older than the initial migration. Nothing was changed. Use the build"
            " that made it, or start with an empty database; `workspace up` makes one in a new"
            " state directory (`--state-dir`)."
        )


def upgrade(url: str, revision: str = "head") -> None:
    """Migrate the database at `url`; safe to call from several processes at once.

    Raises UnknownRevisionError for a database that another build has migrated.
    """
    engine = create_engine(driver_url(url))
    try:
        with engine.connect() as connection:
            config = configuration()
            _take_over(connection)
            _refuse_unknown(connection, config)
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
            connection.commit()
    finally:
        engine.dispose()


def _take_over(connection: Connection) -> None:
    if MigrationContext.configure(connection).get_current_revision() == TAKEN_OVER:
        # Of several at once, all but one wait here for the row and then find it changed.
        connection.execute(
            text("UPDATE alembic_version SET version_num = :new WHERE version_num = :old"),
            {"new": INITIAL, "old": TAKEN_OVER},
        )


def _refuse_unknown(connection: Connection, config: Config) -> None:
    found = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if found is not None and found not in known:
        raise UnknownRevisionError(found)


def current(url: str) -> str | None:
    """The revision the database is at; None for an empty one."""
    engine = create_engine(driver_url(url))
    try:
        with engine.connect() as connection:
            return MigrationContext.configure(connection).get_current_revision()
    finally:
        engine.dispose()


def head() -> str | None:
    """The newest revision this build knows."""
    return ScriptDirectory.from_config(configuration()).get_current_head()


def configuration(scripts: Path = SCRIPTS) -> Config:
    """Alembic's configuration without an ini file, so that it ships inside the package."""
    config = Config()
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.set_main_option("file_template", "%%(rev)s_%%(slug)s")
    return config
