"""Parameters of node kinds after their bindings are resolved."""

import uuid
from typing import Any

import pydantic
import pytest

from models.automation.automations.rules.graph.configs import CONFIGS, HttpRequestConfig
from models.automation.automations.rules.graph.kinds import NODE_KINDS, EdgeOutcome, NodeKind

ID = str(uuid.UUID(int=1))


def test_every_kind_has_a_config_and_a_spec() -> None:
    assert set(CONFIGS) == set(NODE_KINDS) == set(NodeKind)


@pytest.mark.parametrize(
    ("kind", "outcomes"),
    [
        ("condition", "false true failure"),
        ("switch", "case default failure"),
        ("transform", "always success failure"),
        ("join", "always success"),
        ("query_records", "always success failure"),
        ("create_record", "always success failure"),
        ("update_record", "always success failure"),
        ("delete_record", "always success failure"),
        ("http_request", "always success failure finally"),
        ("delay", "always success"),
        ("stop", ""),
    ],
)
def test_the_edge_outcomes_of_each_node_kind(kind: str, outcomes: str) -> None:
    assert NODE_KINDS[NodeKind(kind)].outcomes == {EdgeOutcome(o) for o in outcomes.split()}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("condition", {"expression": "true"}),
        ("condition", {"filter": {"and": []}}),
        ("switch", {"cases": [{"key": "a", "expression": "true"}]}),
        ("transform", {"output": {"x": None}}),
        ("join", {}),
        ("join", {"mode": "count", "count": 2}),
        ("query_records", {"databaseId": ID}),
        ("query_records", {"databaseId": ID, "query": {"limit": 200, "fields": ["a"]}}),
        ("create_record", {"databaseId": ID, "data": {"a": None}, "upsertBy": ["a"]}),
        ("update_record", {"recordId": ID, "title": None}),
        ("delete_record", {"recordId": ID}),
        ("http_request", {"url": "https://x.test"}),
        ("http_request", {"url": "http://127.0.0.1:8080/?a=[x]#http://y:0"}),
        ("http_request", {"url": "https://bücher.example/"}),
        ("http_request", {"url": "http://x", "auth": {"type": "bearer", "token": "t"}}),
        ("http_request", {"url": "http://x", "expectStatus": [200, "3xx"], "body": [1]}),
        ("delay", {"seconds": 0.5}),
        ("delay", {"until": "2026-01-01T09:00", "timezone": "Europe/Berlin"}),
        ("send_email", {"to": "a@b.test", "subject": "x"}),
        ("send_email", {"to": ["a@b.test", "c@d.test"], "subject": "x"}),
        ("approval", {"role": "admin", "reminderSeconds": 1}),
        ("stop", {}),
        ("stop", {"result": "failed", "message": "no", "output": {"a": 1}}),
    ],
)
def test_a_valid_config_is_accepted(kind: str, value: Any) -> None:
    CONFIGS[NodeKind(kind)].model_validate(value)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("condition", {}),
        ("condition", {"expression": "true", "filter": {}}),
        ("condition", {"expression": True}),
        ("switch", {"cases": []}),
        ("switch", {"cases": [{"key": "a", "expression": "true"}] * 2}),
        ("transform", {}),
        ("transform", {"output": []}),
        ("join", {"mode": "some"}),
        ("join", {"mode": "count"}),
        ("join", {"mode": "any", "count": 2}),
        ("query_records", {}),
        ("query_records", {"databaseId": "x"}),
        ("query_records", {"databaseId": ID, "query": {"limit": 0}}),
        ("create_record", {"databaseId": ID, "data": None}),
        ("update_record", {"databaseId": ID}),
        ("http_request", {}),
        ("http_request", {"url": "ftp://x"}),
        ("http_request", {"url": "http://x y"}),
        ("http_request", {"url": "http://x", "method": "get"}),
        ("http_request", {"url": "http://x", "headers": {"a b": "c"}}),
        ("http_request", {"url": "http://x", "headers": {"a": "b\r\nX: y"}}),
        ("http_request", {"url": "http://x", "headers": {"a": {"b": 1}}}),
        ("http_request", {"url": "http://x", "auth": {"type": "bearer"}}),
        ("http_request", {"url": "http://x", "auth": {"type": "basic", "username": "u"}}),
        ("http_request", {"url": "http://x", "auth": {"type": "oauth"}}),
        ("http_request", {"url": "http://x", "expectStatus": [99]}),
        ("http_request", {"url": "http://x", "expectStatus": True}),
        ("http_request", {"url": "http://x", "expectStatus": ["9xx"]}),
        ("http_request", {"url": "http://x", "timeoutSeconds": 0}),
        ("delay", {}),
        ("delay", {"seconds": 1, "until": "2026-01-01"}),
        ("delay", {"seconds": -1}),
        ("delay", {"seconds": float("nan")}),
        ("delay", {"seconds": 31 * 86_400}),
        ("delay", {"until": "tomorrow"}),
        ("delay", {"until": "2026-01-01", "timezone": "Mars/Olympus"}),
        ("delay", {"until": "2026-01-01", "timezone": "../../etc/passwd"}),
        ("delay", {"until": "2026-01-01", "timezone": "right/Europe/Berlin"}),
        ("delay", {"until": "2026-01-01", "timezone": "localtime"}),
        ("send_email", {"to": "nobody", "subject": "x"}),
        ("send_email", {"to": [], "subject": "x"}),
        ("send_email", {"to": 5, "subject": "x"}),
        ("approval", {"role": "admin", "reminderSeconds": 0}),
        ("stop", {"result": "done"}),
        ("stop", {"unknown": 1}),
    ],
)
def test_an_invalid_config_is_refused(kind: str, value: Any) -> None:
    with pytest.raises(pydantic.ValidationError):
        CONFIGS[NodeKind(kind)].model_validate(value)


def test_headers_and_query_carry_text() -> None:
    config = HttpRequestConfig.model_validate(
        {
            "url": "http://x",
            "headers": {"X-Count": 5, "X-Flag": True, "X-None": None},
            "query": {"page": 2, "tag": ["a", 1], "none": None},
        }
    )
    assert config.headers == {"X-Count": "5", "X-Flag": "true"}
    assert config.query == {"page": "2", "tag": ["a", "1"]}


@pytest.mark.parametrize(
    ("expected", "status", "success"),
    [
        (None, 204, True),
        (None, 302, False),
        ([404], 404, True),
        ([404], 200, False),
        (404, 404, True),
        ("2xx", 204, True),
        ("2xx", 404, False),
        (["4xx"], 418, True),
    ],
)
def test_the_statuses_that_are_a_success(expected: Any, status: int, success: bool) -> None:
    given = {"url": "http://x"} | ({} if expected is None else {"expectStatus": expected})
    assert HttpRequestConfig.model_validate(given).expects(status) is success
