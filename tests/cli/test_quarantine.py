"""`workspace quarantine`: what is executed apart from all other work, and how that is lifted."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest
from typer.testing import CliRunner, Result

from cli.commands import app
from cli.supervisor.state import write_private
from runtime.database import libpq_url
from tests.support.postgres import migrated_database


@dataclass(frozen=True, slots=True)
class Suspects:
    """Two pieces of work in quarantine, and one that is only suspected."""

    url: str
    earlier: UUID
    later: UUID
    suspected: UUID

    def left(self) -> set[UUID]:
        with psycopg.connect(self.url) as connection:
            query = "SELECT id FROM work_suspect WHERE id = ANY(%s)"
            ids = [self.earlier, self.later, self.suspected]
            return {id_ for (id_,) in connection.execute(query, [ids])}


@pytest.fixture
def suspects(database_url: str) -> Iterator[Suspects]:
    made = Suspects(libpq_url(database_url), uuid4(), uuid4(), uuid4())
    rows = [
        (made.earlier, 3, "2026-07-01T08:00:00Z"),
        (made.later, 4, "2026-07-02T09:30:15Z"),
        (made.suspected, 1, None),
    ]
    with psycopg.connect(made.url) as connection:
        connection.cursor().executemany(
            "INSERT INTO work_suspect (id, lost, suspected_at, quarantined_at)"
            " VALUES (%s, %s, '2026-07-01', %s)",
            rows,
        )
    yield made
    with psycopg.connect(made.url) as connection:
        ids = [id_ for id_, *_ in rows]
        connection.execute("DELETE FROM work_suspect WHERE id = ANY(%s)", [ids])


def quarantine(*arguments: str, url: str | None) -> Result:
    unset = dict.fromkeys(name for name in os.environ if name.startswith("WORKSPACE_"))
    return CliRunner().invoke(app, ["quarantine", *arguments], env={**unset, "DATABASE_URL": url})


def test_it_lists_what_is_quarantined_the_latest_first(suspects: Suspects) -> None:
    listed = quarantine(url=suspects.url)
    assert listed.exit_code == 0, listed.output
    assert [line.split() for line in listed.output.splitlines()] == [
        ["2026-07-02T09:30:15Z", "lost", "4", str(suspects.later)],
        ["2026-07-01T08:00:00Z", "lost", "3", str(suspects.earlier)],
    ]


@pytest.mark.long
def test_it_says_that_nothing_is_quarantined() -> None:
    with migrated_database("quarantine") as url:
        listed = quarantine(url=url)
    assert (listed.exit_code, listed.stdout) == (0, "")
    assert listed.stderr == "Nothing is quarantined.\n"


def test_it_lifts_one_and_no_other(suspects: Suspects) -> None:
    lifted = quarantine("--lift", str(suspects.later), url=suspects.url)
    assert lifted.exit_code == 0, lifted.output
    assert f"{suspects.later} was released from quarantine" in lifted.output
    assert suspects.left() == {suspects.earlier, suspects.suspected}
    again = quarantine("--lift", str(suspects.later), url=suspects.url)
    assert (again.exit_code, again.stderr.strip()) == (1, f"{suspects.later} is not quarantined.")


def test_its_database_is_that_of_the_platform_on_a_state_directory(
    suspects: Suspects, tmp_path: Path
) -> None:
    here = f"--state-dir={tmp_path}"
    nowhere = quarantine(here, url=None)
    assert nowhere.exit_code == 1
    assert "No platform is running in" in nowhere.stderr
    write_private(tmp_path / "connection.json", {"databaseUrl": suspects.url})
    listed = quarantine(here, url=None)
    assert str(suspects.later) in listed.output
