"""The schema's history ends where the tables are, and forbidden status changes are refused."""

import psycopg
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine, text
from sqlalchemy.exc import IntegrityError

from models.migrations.runner import configuration, current, head, upgrade
from models.migrations.triggers import create_status_trigger, drop_status_trigger
from models.tables import metadata
from runtime.database import driver_url
from tests.support.watched import WatchedDatabase


def test_migrations_lead_to_the_tables(database_url: str) -> None:
    engine = create_engine(driver_url(database_url))
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True}
        )
        difference = compare_metadata(context, metadata)
    engine.dispose()
    assert difference == []


def test_upgrade_of_a_migrated_database_changes_nothing(database_url: str) -> None:
    assert current(database_url) == head()
    upgrade(database_url)
    assert current(database_url) == head()


def test_every_migration_can_be_undone(database_url: str) -> None:
    name = "downgrade_check"
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        try:
            url = database_url.replace(f"/{connection.info.dbname}", f"/{name}")
            upgrade(url)
            engine = create_engine(driver_url(url))
            with engine.connect() as target:
                config = configuration()
                config.attributes["connection"] = target
                command.downgrade(config, "base")
                target.commit()
                tables = target.execute(
                    text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
                )
                assert [row.tablename for row in tables] == ["alembic_version"]
            engine.dispose()
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def test_status_trigger_refuses_what_the_table_does_not_allow(
    database: WatchedDatabase,
) -> None:
    transitions = {"queued": ["running"], "running": ["done"], "done": []}
    async with database.transaction() as work:
        await work.execute(text("CREATE TABLE thing (id int PRIMARY KEY, status text)"))
        for statement in create_status_trigger("thing", transitions):
            await work.execute(text(statement.replace(":", r"\:")))
        await work.execute(text("INSERT INTO thing VALUES (1, 'queued')"))
        for status in ("queued", "running", "done", "done"):
            await work.execute(text("UPDATE thing SET status = :s").bindparams(s=status))
    with pytest.raises(IntegrityError) as refused:
        async with database.transaction() as work:
            await work.execute(text("UPDATE thing SET status = 'running'"))
    assert refused.value.orig.sqlstate == "23514"
    async with database.transaction() as work:
        for statement in drop_status_trigger("thing"):
            await work.execute(text(statement))
        await work.execute(text("UPDATE thing SET status = 'queued'"))
        await work.execute(text("DROP TABLE thing"))


@pytest.mark.parametrize("name", ["Thing", "a b", "x;y", "it's", ""])
def test_status_trigger_takes_plain_names_only(name: str) -> None:
    with pytest.raises(ValueError, match="plain"):
        create_status_trigger(name, {"queued": ["running"]})
    with pytest.raises(ValueError, match="plain"):
        create_status_trigger("thing", {"queued": [name]})
