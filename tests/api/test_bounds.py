"""The last place of a bound is given once, however many ask for it at the same time."""

import asyncio
import itertools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import func, select

from cli.supervisor.development import DevelopmentIssuer
from models.automation.alert_rules.queries import RULES
from models.automation.saved_run_filters import FILTERS
from models.automation.secrets.store import SECRETS
from models.core.repository import Bound, Repository
from models.messages.webhook_endpoints.store import ENDPOINTS
from models.people.api_keys import KEYS
from models.people.audience_segments import SEGMENTS
from models.people.experiments.queries import EXPERIMENTS
from models.people.oauth_clients import CHOICES
from models.sources.connections.store import CONNECTIONS
from models.sources.outbound_limits.tables import LIMITS
from models.workspace.changes.requests import PROPOSED
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

    bound: Bound
    body: Callable[[], Mapping[str, Any]]
    path: str
    """Below the workspace, unless it begins with /v1."""
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)


RESOURCES = [
    Bounded(
        KEYS,
        lambda: {"name": "Key", "scopes": ["resources:read"]},
        "/api-keys",
    ),
    Bounded(
        SEGMENTS,
        lambda: {"key": f"segment_{uuid4().hex}", "label": "Large", "rule": SEGMENT_RULE},
        "/v1/admin/audience-segments",
    ),
    Bounded(
        EXPERIMENTS,
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
        RULES.limit,
        lambda: {"label": "Rule", "condition": FAILURES},
        "/alert-rules",
    ),
    Bounded(
        FILTERS.limit,
        lambda: {"label": "Mine", "query": {}},
        "/run-filters",
    ),
    Bounded(
        SECRETS,
        lambda: {"value": "x"},
        "/secrets/{name}",
        "PUT",
    ),
    Bounded(
        ENDPOINTS.limit,
        lambda: {"url": "https://hooks.example.test/"},
        "/webhook-endpoints",
    ),
    Bounded(
        CONNECTIONS.limit,
        lambda: HTTP,
        "/integrations/connections",
    ),
    Bounded(
        LIMITS,
        lambda: {"host": f"{_name()}.example.test", "perSecond": 5},
        "/integrations/outbound-limits",
    ),
    Bounded(
        CHOICES,
        lambda: {"oauthClientId": _name()},
        "/v1/me/oauth-client-workspace-preferences",
        "PUT",
    ),
    Bounded(
        PROPOSED,
        lambda: {"label": "Filter", "query": {}},
        "/run-filters",
        headers={"Prefer": "propose"},
    ),
]


async def _present(space: Space, bound: Bound) -> int:
    columns = bound.table.c
    owned = [columns.workspace_id == space.id] if "workspace_id" in columns else []
    count = select(func.count()).select_from(bound.table).where(*owned, *bound.conditions)
    async with space.database.reading() as work:
        return int(await work.scalar(count))


def test_every_bound_is_tried() -> None:
    names = [name for name in sys.modules if name.startswith("models.")]
    values = [value for name in names for value in vars(sys.modules[name]).values()]
    bounds = {id(value) for value in values if isinstance(value, Bound)}
    bounds |= {id(value.limit) for value in values if isinstance(value, Repository) and value.limit}
    assert bounds == {id(resource.bound) for resource in RESOURCES}


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.bound.table.name)
async def test_the_last_place_is_given_once(
    client: Client,
    space: Space,
    issuer: DevelopmentIssuer,
    monkeypatch: pytest.MonkeyPatch,
    resource: Bounded,
) -> None:
    monkeypatch.setattr(resource.bound, "most", await _present(space, resource.bound) + 1)
    caller = client.with_token(admin_session(issuer)) if "admin" in resource.path else client
    prefix = "" if resource.path.startswith("/v1") else space.path
    more = {"workspaceId": str(space.id)} if "/me/" in resource.path else {}
    numbers = itertools.count()

    async def add() -> int:
        path = prefix + resource.path.format(name=f"s{next(numbers)}")
        answer = await caller.request(
            resource.method, path, json={**resource.body(), **more}, headers=resource.headers
        )
        assert answer.status_code in {200, 201, 202, 409}, answer.text
        return answer.status_code

    statuses = await asyncio.gather(*(add() for _ in range(AT_ONCE)))
    assert sum(status < 300 for status in statuses) == 1, statuses
