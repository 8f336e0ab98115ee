"""Bring a database to the newest schema, and say where one stands."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from runtime.database import driver_url

LOCK = 7_020_011
"""The advisory lock that lets one process migrate at a time."""

SCRIPTS = Path(__file__).parent


def upgrade(url: str, revision: str = "head") -> None:
    """Migrate the database at `url`; safe to call from several processes at once."""
    engine = create_engine(driver_url(url))
    try:
        with engine.connect() as connection:
            config = configuration()
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
            connection.commit()
    finally:
        engine.dispose()


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
