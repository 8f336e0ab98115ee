"""The last place of a bound is given once, however many ask for it at the same time."""

import asyncio
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Table, func, select

from models.automation.alert_rules.tables import alert_rule
from models.automation.saved_run_filters import saved_run_filter
from models.automation.secrets.store import workspace_secret
from models.messages.webhook_endpoints.tables import webhook_endpoint
from models.people.api_keys import api_key
from models.people.audience_segments import audience_segment
from models.people.experiments.rules import ExperimentStatus, TargetType
from models.people.experiments.tables import experiment
from models.people.oauth_clients import oauth_client_choice
from models.sources.connections.tables import connection
from models.sources.outbound_limits.tables import outbound_place
from runtime.development_issuer import DevelopmentIssuer
from tests.support.admins import admin_session
from tests.support.client import Client
from tests.support.spaces import Space

AT_ONCE = 5
SEGMENT_RULE = {"field": "workspace.memberCount", "op": "gte", "value": 50}
HALVES = [{"id": "a", "label": "A", "split": 50}, {"id": "b", "label": "B", "split": 50}]
HTTP = {
    "provider": "http",
    "label": "Shop",
    "config": {"baseUrl": "https://shop.example"},
    "credentials": {"secret": "x"},
}
FAILURES = {"kind": "failures", "runs": 10, "minutes": 15, "query": {}}


def _name() -> str:
    return f"n{uuid4().hex}"


@dataclass(frozen=True, slots=True)
class Bounded:
    """A resource of limited number, and a request that adds one."""

    table: Table
    most: str
    """The module and the name of the bound."""
    body: Callable[[], Mapping[str, Any]]
    path: str
    """Below the workspace, unless it begins with /v1."""
    method: str = "POST"


RESOURCES = [
    Bounded(
        api_key,
        "models.people.api_keys.MAX_KEYS",
        lambda: {"name": "Key", "scopes": ["resources:read"]},
        "/api-keys",
    ),
    Bounded(
        audience_segment,
        "models.people.audience_segments.MAX_SEGMENTS",
        lambda: {"key": f"segment_{uuid4().hex}", "label": "Large", "rule": SEGMENT_RULE},
        "/v1/admin/audience-segments",
    ),
    Bounded(
        experiment,
        "models.people.experiments.commands.MAX_EXPERIMENTS",
        lambda: {
            "name": "Form",
            "targetType": "flag",
            "flagKey": _name(),
            "primaryMetric": "signed_up",
            "guardrailMetric": "form_failed",
            "variants": HALVES,
        },
        "/v1/admin/experiments",
    ),
    Bounded(
        alert_rule,
        "models.automation.alert_rules.commands.MAX_RULES",
        lambda: {"label": "Rule", "condition": FAILURES},
        "/alert-rules",
    ),
    Bounded(
        saved_run_filter,
        "models.automation.saved_run_filters.MAX_FILTERS",
        lambda: {"label": "Mine", "query": {}},
        "/run-filters",
    ),
    Bounded(
        workspace_secret,
        "models.automation.secrets.store.MAX_SECRETS",
        lambda: {"value": "x"},
        "/secrets/{name}",
        "PUT",
    ),
    Bounded(
        webhook_endpoint,
        "models.messages.webhook_endpoints.commands.MAX_ENDPOINTS",
        lambda: {"url": "https://hooks.example.test/"},
        "/webhook-endpoints",
    ),
    Bounded(
        connection,
        "models.sources.connections.commands.MAX_CONNECTIONS",
        lambda: HTTP,
        "/integrations/connections",
    ),
    Bounded(
        outbound_place,
        "models.sources.outbound_limits.commands.MOST_LIMITS",
        lambda: {"host": f"{_name()}.example.test", "perSecond": 5},
        "/integrations/outbound-limits",
    ),
    Bounded(
        oauth_client_choice,
        "models.people.oauth_clients.MAX_CHOICES",
        lambda: {"oauthClientId": _name()},
        "/v1/me/oauth-client-workspace-preferences",
        "PUT",
    ),
]


async def _present(space: Space, table: Table) -> int:
    owned = [table.c.workspace_id == space.id] if "workspace_id" in table.c else []
    if table is experiment:
        owned = [
            table.c.status != ExperimentStatus.ARCHIVED,
            table.c.target_type != TargetType.AUTOMATION_VERSION,
        ]
    async with space.database.reading() as work:
        return int(await work.scalar(select(func.count()).select_from(table).where(*owned)))


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.table.name)
async def test_the_last_place_is_given_once(
    client: Client,
    space: Space,
    issuer: DevelopmentIssuer,
    monkeypatch: pytest.MonkeyPatch,
    resource: Bounded,
) -> None:
    monkeypatch.setattr(resource.most, await _present(space, resource.table) + 1)
    caller = client.with_token(admin_session(issuer)) if "admin" in resource.path else client
    prefix = "" if resource.path.startswith("/v1") else space.path
    more = {"workspaceId": str(space.id)} if "/me/" in resource.path else {}
    numbers = itertools.count()

    async def add() -> int:
        path = prefix + resource.path.format(name=f"s{next(numbers)}")
        answer = await caller.request(resource.method, path, json={**resource.body(), **more})
        assert answer.status_code in {200, 201, 409}, answer.text
        return answer.status_code

    statuses = await asyncio.gather(*(add() for _ in range(AT_ONCE)))
    assert sum(status < 300 for status in statuses) == 1, statuses
