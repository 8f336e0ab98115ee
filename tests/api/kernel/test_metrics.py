"""The metrics that Prometheus reads, and the dashboard that shows them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import delete, insert, select, text, update
from sqlmodel import SQLModel

from api.app import create_app
from models.automation.automation_runs.rules import RunStatus
from models.automation.automation_runs.tables import automation_run
from models.automation.run_statistics import settle_runs
from models.core.lifecycle.commands import executed_tables
from models.migrations.status_triggers import counting
from models.workspace.system import ended_work, merge_ended_work
from runtime.clock import utc_now
from runtime.configuration.settings import Settings
from tests.support.ageing import make_automation, run_row
from tests.support.client import Client, Contract
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


@pytest.mark.long
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


@pytest.mark.long
async def test_counted_attributes_have_listed_values_alone(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.metrics.STATE_SECONDS", 0)
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


@pytest.mark.parametrize("status", [RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.TIMED_OUT])
async def test_ended_runs_are_counted_by_outcome(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch, status: RunStatus
) -> None:
    monkeypatch.setattr("api.metrics.STATE_SECONDS", 0)
    label = ("automation-run", status.value)
    version = await make_automation(space)
    before = (await scraped(client)).get("workspace_ended_work_total", {}).get(label, 0)
    for _ in range(3):
        await ended(space, version, status, None)
    # What is removed later, and what the sweep has merged, still counts.
    async with space.database.transaction() as work:
        ours = automation_run.c.workspace_id == space.id
        await work.execute(delete(automation_run).where(ours))
        while await merge_ended_work(work):
            pass
        kind = ended_work.c.kind == label[0]
        rows = select(ended_work).where(kind, ended_work.c.status == label[1])
        assert len(await work.rows(rows)) == 1
    assert (await scraped(client))["workspace_ended_work_total"][label] == before + 3


async def test_every_table_of_durable_work_counts_its_ends(space: Space) -> None:
    async with space.database.reading() as work:
        rows = await work.rows(
            text("SELECT proname, prosrc FROM pg_proc WHERE proname LIKE '%\\_count\\_end'")
        )
    found = {row.proname: " ".join(row.prosrc.split()) for row in rows}
    wanted = {
        f"{kind.table.name}_count_end": " ".join(counting(kind).split("$$")[1].split())
        for kind in executed_tables(SQLModel.metadata)
    }
    assert found == wanted


async def test_a_process_shows_its_memory_its_processor_and_its_connections(client: Client) -> None:
    metrics = await scraped(client)
    assert metrics["process_resident_memory_bytes"][()] > 10_000_000
    assert metrics["process_cpu_seconds_total"][()] > 0
    for name in ("in_use", "idle", "waiting", "max"):
        shown = metrics[f"workspace_database_connections_{name}"]
        assert set(shown) == {("transactions",), ("statements",)}
    assert metrics["workspace_database_connections_max"][("transactions",)] == 15
    assert metrics["workspace_database_up"][()] == 1


async def test_metrics_answer_without_a_database(
    settings: Settings, client: Client, contract: Contract, space: Space
) -> None:
    everything = (await scraped(client)).keys()
    url = type(settings.database_url)("postgresql://127.0.0.1:1/none")
    app = create_app(settings.model_copy(update={"database_url": url}), background=())
    alone = Client(app, contract, space.token)
    assert (await alone.get("/v1/me")).status_code == 503
    metrics = await scraped(alone)
    assert metrics["workspace_database_up"][()] == 0
    assert metrics["workspace_http_requests_total"][("get_me", "503")] == 1
    assert metrics["process_resident_memory_bytes"][()] > 0
    of_the_database = {"workspace_relay_waiting", "workspace_workers"}
    assert of_the_database <= everything
    assert not of_the_database & metrics.keys()


async def test_the_dashboard_shows_what_there_is(client: Client) -> None:
    asked = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
    names = set(re.findall(r"\b(?:workspace|temporal)_\w+", " ".join(asked)))
    metrics = await scraped(client)
    answer = await client.with_token(None).get("/metrics")
    described = set(re.findall(r"# TYPE (\w+)", answer.text))
    shown = metrics.keys() | described
    assert {name for name in names if not name.startswith(OF_THE_SDK)} <= shown


RULES = [
    rule
    for group in yaml.safe_load(Path("docs/operations/alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
NOT_METRICS = {
    "and", "by", "histogram_quantile", "increase", "max", "min", "rate", "sum", "le", "instance",
    "kind", "pool", "queue", "status", "up",
}  # fmt: skip
"""Words of PromQL, labels that are grouped by, and the metric that Prometheus makes itself."""


def names_in(expression: str) -> set[str]:
    """The metrics of an expression: the words outside of its labels, strings and ranges."""
    bare = re.sub(r"\{[^}]*\}|\[[^]]*\]|\"[^\"]*\"", " ", expression)
    return set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", bare)) - NOT_METRICS


def labels_in(expression: str) -> dict[str, set[str]]:
    """The labels that are asked for, by metric."""
    found: dict[str, set[str]] = {}
    for metric, inner in re.findall(r"(\w+)\{([^}]*)\}", expression):
        found.setdefault(metric, set()).update(re.findall(r"(\w+)\s*[=!]~?", inner))
    return found


def is_whole(expression: str) -> bool:
    """Say whether its brackets and quotes are closed, and none of its operators is loose."""
    bare = re.sub(r"\"[^\"]*\"", "", expression)
    for _ in range(20):
        bare = re.sub(r"\([^()[\]{}]*\)|\[[^()[\]{}]*\]|\{[^()[\]{}]*\}", "", bare)
    return not set(bare) & set('()[]{}"') and not re.search(r"(?:[/<>=]|\band)\s*$", bare.strip())


OF_THE_PLATFORM = (
    "workspace_relay_", "workspace_events_", "workspace_open_", "workspace_ended_",
    "workspace_workers",
)  # fmt: skip
"""What is the same from each process."""


@pytest.mark.parametrize("rule", RULES, ids=[rule["alert"] for rule in RULES])
def test_an_alert_rule_counts_the_platform_once(rule: dict[str, Any]) -> None:
    """A sum over processes would count each run once for each process that is scraped."""
    of_one = re.sub(r"\b(?:max|min)(?: by \([\w, ]*\))? ?\((?:increase\()?\w+", "", rule["expr"])
    assert not [name for name in names_in(of_one) if name.startswith(OF_THE_PLATFORM)]


@pytest.mark.parametrize("rule", RULES, ids=[rule["alert"] for rule in RULES])
async def test_an_alert_rule_is_whole(client: Client, rule: dict[str, Any]) -> None:
    answer = await client.with_token(None).get("/metrics")
    families = {
        name: family
        for family in text_string_to_metric_families(answer.text)
        for name in (
            {sample.name for sample in family.samples}
            | {family.name}
            | ({f"{family.name}_total"} if family.type == "counter" else set())
            | ({f"{family.name}_bucket"} if family.type == "histogram" else set())
        )
    }
    assert names_in(rule["expr"]) <= families.keys()
    assert is_whole(rule["expr"])
    assert re.search(r"[<>=]=?\s*[\d.e+]+", rule["expr"]), "a threshold"
    for metric, labels in labels_in(rule["expr"]).items():
        if metric in families and families[metric].samples:
            own = families[metric].samples[0].labels.keys() | {"job", "instance"}
            assert labels <= own, metric
    assert re.fullmatch(r"\d+m", rule["for"])
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert rule["annotations"]["summary"].endswith(".")


@pytest.mark.parametrize("rule", RULES, ids=[rule["alert"] for rule in RULES])
def test_an_alert_rule_leads_to_a_section_that_is_there(rule: dict[str, Any]) -> None:
    path, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    headings = re.findall(r"^#+ (.+)$", Path(path).read_text(encoding="utf-8"), re.MULTILINE)
    slugs = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in headings}
    assert anchor in slugs


def test_no_two_alert_rules_have_one_name() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES)


@pytest.mark.parametrize(
    "expression",
    ["sum(rate(a[5m])", 'a{b="c"', "a /", "a > 1 and"],
)
def test_a_rule_that_is_not_whole_is_seen(expression: str) -> None:
    assert not is_whole(expression)
