"""The metrics that Prometheus reads, and the dashboard that shows them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import insert, update

from models.automation.automation_runs.rules import RunStatus
from models.automation.automation_runs.tables import automation_run
from models.automation.run_statistics.sums import settle_runs
from runtime.clock import utc_now
from tests.support.ageing import make_automation, run_row
from tests.support.client import Client
from tests.support.spaces import Space

BOARD = json.loads(Path("docs/operations/grafana.json").read_text(encoding="utf-8"))
OF_THE_SDK = "temporal_"


async def scraped(client: Client) -> dict[str, dict[tuple[str, ...], float]]:
    """The samples by name, and by the values of their labels."""
    answer = await client.with_token(None).get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


async def test_requests_are_counted_by_operation_and_status(client: Client, space: Space) -> None:
    before = (await scraped(client)).get("workspace_http_requests_total", {})
    for _ in range(3):
        assert (await client.get(space.path)).status_code == 200
    assert (await client.with_token(None).get(space.path)).status_code == 401
    after = await scraped(client)
    counted = after["workspace_http_requests_total"]
    for status, count in (("200", 3), ("401", 1)):
        label = ("get_workspace", status)
        assert counted[label] - before.get(label, 0) == count
    assert after["workspace_http_request_seconds_count"][("get_workspace",)] >= 4
    assert after["workspace_relay_waiting"][()] >= 0
    assert str(space.id) not in json.dumps([str(key) for key in after.values()])


async def test_a_path_that_is_not_served_makes_no_series_of_its_own(client: Client) -> None:
    before = len((await scraped(client))["workspace_http_requests_total"])
    for number in range(20):
        await client.get(f"/v1/nothing/{number}")
    after = await scraped(client)
    assert len(after["workspace_http_requests_total"]) <= before + 2


async def ended(space: Space, version: Any, status: RunStatus, attributes: Any) -> None:
    """A run that went on, and then ended."""
    values = {"status": "running", "completed_at": None, "attributes": attributes}
    row = run_row(space, version, **values)
    end = {"status": status.value, "completed_at": utc_now()}
    async with space.database.transaction() as work:
        await work.execute(insert(automation_run).values(row))
        await work.execute(
            update(automation_run).where(automation_run.c.id == row["id"]).values(end)
        )


async def test_counted_attributes_have_listed_values_alone(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.kernel.metrics.STATE_SECONDS", 0)
    version = await make_automation(space)
    before = (await scraped(client)).get("workspace_runs_by_attribute_total", {})
    for region in ("eu", "eu", "us", "mars", None):
        labels = {"order": "4711"} if region is None else {"region": region}
        await ended(space, version, RunStatus.SUCCEEDED, labels)
    await ended(space, version, RunStatus.CANCELLED, {"region": "eu"})
    await ended(space, version, RunStatus.CANCELLED, None)
    async with space.database.transaction() as work:
        while await settle_runs(work, {"region": ["eu", "us"]}):
            pass
    counted = (await scraped(client))["workspace_runs_by_attribute_total"]
    grown = {key: count - before.get(key, 0) for key, count in counted.items()}
    assert {key: number for key, number in grown.items() if number} == {
        ("region", "succeeded", "eu"): 2,
        ("region", "succeeded", "us"): 1,
        ("region", "succeeded", "other"): 1,
        ("region", "cancelled", "eu"): 1,
    }


async def test_the_dashboard_shows_what_there_is(client: Client) -> None:
    asked = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
    names = set(re.findall(r"\b(?:workspace|temporal)_\w+", " ".join(asked)))
    metrics = await scraped(client)
    answer = await client.with_token(None).get("/metrics")
    described = set(re.findall(r"# TYPE (\w+)", answer.text))
    shown = metrics.keys() | described
    assert {name for name in names if not name.startswith(OF_THE_SDK)} <= shown
