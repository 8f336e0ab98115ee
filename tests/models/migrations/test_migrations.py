"""The schema's history ends where the tables are, and each step of it can be undone."""

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from models.migrations.queries import newest
from models.migrations.runner import configuration, current, head, upgrade
from models.tables import metadata
from runtime.database import driver_url
from tests.support.postgres import migrated_database


def test_migrations_lead_to_the_tables(database_url: str) -> None:
    engine = create_engine(driver_url(database_url))
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True}
        )
        difference = compare_metadata(context, metadata)
    engine.dispose()
    assert difference == []


def test_the_newest_revision_is_the_one_that_alembic_finds() -> None:
    assert newest() == head()


def test_upgrade_of_a_migrated_database_changes_nothing(database_url: str) -> None:
    assert current(database_url) == head()
    upgrade(database_url)
    assert current(database_url) == head()


@pytest.mark.long
def test_every_migration_after_the_initial_one_can_be_undone() -> None:
    config = configuration()
    (initial,) = ScriptDirectory.from_config(config).get_bases()
    with migrated_database("undone") as url:
        engine = create_engine(driver_url(url))
        with engine.connect() as connection:
            config.attributes["connection"] = connection
            command.downgrade(config, initial)
            connection.commit()
        engine.dispose()
        assert current(url) == initial
        upgrade(url)
        assert current(url) == head()
