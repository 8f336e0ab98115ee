"""The commands of README.md and of the pages in docs, typed beside a platform as they stand there.

Those of the runbook and of deployments have tests of their own.
"""

import csv
import io
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
import pytest_asyncio
from openpyxl import Workbook

from tests.support.checkout import Checkout
from tests.support.engine import graph, node
from tests.support.fingerprints import ROOT
from tests.support.patience import found_when
from tests.support.runbook import blocks_of

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=60), pytest.mark.long]

Json = dict[str, Any]
FIRST_RUN, FIRST_DATABASE = blocks_of(ROOT / "README.md")["A first run"]
DEFINITIONS = FIRST_RUN.partition("\n\n")[0]
VARIABLES = """
WORKSPACE_URL=$(known "['baseUrl']" < .state/connection.json)
ID=$(known "['workspaceId']" < .state/connection.json)
KEY=$(known "['apiKey']" < .state/connection.json)
"""
"""The names that the pages of docs take as set."""
FAILING = graph(node("end", "stop", result="failed", message="Out of stock"))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def checkout(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Checkout]:
    checkout = Checkout(tmp_path_factory.mktemp("checkout"))
    async with checkout.up("workspace up"):
        yield checkout
    await checkout.http.aclose()


def block(page: str, title: str) -> str:
    """The first block of a section of a page in docs, with the names that it takes as set."""
    return DEFINITIONS + VARIABLES + blocks_of(ROOT / "docs" / page)[title][0]


async def test_a_first_run(checkout: Checkout) -> None:
    run: Json = json.loads(await checkout.sh(FIRST_RUN))["data"]
    assert run["status"] == "succeeded"
    assert {"text": "Hello Ada!"} in [one["output"] for one in run["nodeRuns"]]


async def test_a_first_database(checkout: Checkout) -> None:
    printed = await checkout.sh(f"{DEFINITIONS}\n{FIRST_DATABASE}")
    answer, _, file = printed.partition("\n}\n")
    data: Json = json.loads(f"{answer}\n}}")["data"]
    assert [one["title"] for one in data["records"]] == ["Write it down"]
    assert data["aggregates"] == {"n": 1}
    titles = {row[0] for row in csv.reader(io.StringIO(file.lstrip("\ufeff")))}
    assert {"Write it down", "Do it"} <= titles


async def test_a_connection(checkout: Checkout) -> None:
    printed = await checkout.sh(block("integrations.md", "Connections"))
    assert json.loads(printed)["data"]["resources"]


async def test_a_pause_and_its_end(checkout: Checkout) -> None:
    printed = await checkout.sh(block("pauses.md", "Pause and resume"))
    pause, end = json.JSONDecoder().raw_decode(printed)
    assert pause["data"]["reason"] == "The year is being closed."
    assert "data" in json.loads(printed[end:])
    over = {"state": "running", "resting": 0}
    # What rests is let go by a worker, a moment after the answer.
    await found_when(partial(checkout.call, "/pause"), over.__eq__, "the end of the pause")


async def test_an_outbound_limit(checkout: Checkout) -> None:
    printed = await checkout.sh(block("outbound-limits.md", "Outbound limits"))
    assert json.loads(printed)["data"]["host"] == "api.example.com"


async def test_an_import_from_a_terminal(checkout: Checkout) -> None:
    book = Workbook()
    for row in (["Code", "Price"], ["a", 1.5], ["b", 2]):
        book.active.append(row)
    book.save(checkout.directory / "prices.xlsx")
    printed = await checkout.sh(
        block("rows.md", "Imports and data sources").partition("workspace refresh")[0]
    )
    assert "2" in printed


async def test_failed_runs_in_a_terminal(checkout: Checkout) -> None:
    body = {"label": "Sell", "enabled": True, "graph": FAILING}
    automation = await checkout.call("/automations", body)
    await checkout.call(f"/automations/{automation['id']}/publish", {})
    run = await checkout.call(f"/automations/{automation['id']}/run", {})
    await checkout.wait_for(f"/automations/{automation['id']}/runs/{run['id']}", "failed")
    listing, watching = blocks_of(ROOT / "docs" / "terminal.md")["Commands"][0].splitlines()
    assert "Sell" in await checkout.sh(listing)
    named = watching.replace("0198c5c2-7a3b-7c1d-9e4f-2b6a8d1c0e5f", run["id"])
    assert "failed" in await checkout.sh(f"{named} || test $? = 1")


async def test_completion(checkout: Checkout) -> None:
    script = blocks_of(ROOT / "docs" / "terminal.md")["Completion"][0]
    assert "workspace" in await checkout.sh(f"{script}complete -p workspace")
