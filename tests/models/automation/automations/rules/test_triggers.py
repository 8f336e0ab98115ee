"""Trigger configs: shapes, schedules, and which triggers can fire."""

from typing import Any

import pytest
from pydantic import TypeAdapter

from models.automation.automations.rules.attributes import as_texts, attribute_problems
from models.automation.automations.rules.graph.wait_configs import EventKey
from models.automation.automations.rules.triggers.configs import (
    parse_trigger_config,
    read_trigger,
    trigger_problems,
)
from models.automation.automations.rules.triggers.kinds import TriggerKind, subject_of
from models.core.schedules.timetables import cron_problem
from runtime.errors import ValidationError

EXAMPLES: dict[str, dict[str, Any]] = {
    "manual": {"inputSchema": {"type": "object"}},
    "schedule": {"cron": "0 9 * * mon-fri", "timezone": "Europe/Berlin", "overlap": "buffer_one"},
    "webhook": {"methods": ["POST"], "dedupe": {"source": "header", "name": "X-Id"}},
    "record_created": {"databaseId": "d", "filter": {"field": "a", "op": "eq", "value": 1}},
    "record_updated": {"databaseId": "d", "fieldKeys": ["a"], "debounceSeconds": 5},
    "record_deleted": {"databaseId": "d", "includeSystemChanges": True},
    "record_matches": {"databaseId": "d", "filter": "record.a > 1"},
    "record_date_reached": {"databaseId": "d", "fieldKey": "due", "offsetMinutes": -60},
    "form_submitted": {"formItemId": "f"},
    "button_pressed": {"databaseId": "d", "fieldKey": "go"},
    "data_source_finished": {"dataSourceId": "s", "on": "failed"},
    "automation_failed": {"automationIds": ["a"]},
    "automation_called": {},
    "time_entry_completed": {"targetKind": "item"},
}
DAILY = {"kind": "schedule", "cron": "@daily"}


def test_there_is_an_example_of_every_kind() -> None:
    assert set(EXAMPLES) == set(TriggerKind)


@pytest.mark.parametrize("kind", TriggerKind)
def test_a_valid_trigger_config_is_kept(kind: TriggerKind) -> None:
    given = {"kind": kind.value, "concurrency": {"limit": 1}} | EXAMPLES[kind]
    stored = parse_trigger_config(given)
    assert set(given) <= set(stored)
    assert {key: stored[key] for key in EXAMPLES[kind] if key != "dedupe"} == {
        key: value for key, value in EXAMPLES[kind].items() if key != "dedupe"
    }
    assert parse_trigger_config(stored) == stored
    assert list(trigger_problems(read_trigger(stored))) == []


@pytest.mark.parametrize("kind", TriggerKind)
def test_an_unknown_key_is_refused_by_name(kind: TriggerKind) -> None:
    with pytest.raises(ValidationError) as refusal:
        parse_trigger_config({"kind": kind.value, "extra": 1} | EXAMPLES[kind])
    assert [detail.path for detail in refusal.value.details] == ["triggerConfig.extra"]


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({}, "triggerConfig.kind"),
        ({"kind": "sunrise"}, "triggerConfig.kind"),
        ({"kind": ["manual"]}, "triggerConfig.kind"),
        ({"kind": "manual", "inputSchema": "x"}, "triggerConfig.inputSchema"),
        ({"kind": "schedule", "intervalSeconds": 59}, "triggerConfig.intervalSeconds"),
        ({"kind": "schedule", "intervalSeconds": "60"}, "triggerConfig.intervalSeconds"),
        ({"kind": "schedule", "overlap": "maybe"}, "triggerConfig.overlap"),
        ({"kind": "schedule", "startAt": "soon"}, "triggerConfig.startAt"),
        ({"kind": "webhook", "signature": {"scheme": "md5"}}, "triggerConfig.signature.scheme"),
        ({"kind": "manual", "concurrency": {"limit": 0}}, "triggerConfig.concurrency.limit"),
        ({"kind": "automation_failed", "automationIds": []}, "triggerConfig.automationIds"),
        ({"kind": "record_created", "filter": 5}, "triggerConfig.filter"),
    ],
)
def test_a_wrong_shape_is_refused_at_its_place(given: Any, path: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        parse_trigger_config(given)
    assert refusal.value.details[0].path == path


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"kind": "schedule"}, "triggerConfig: A schedule needs either cron or intervalSeconds"),
        ({"kind": "schedule", "cron": "* * * * *", "intervalSeconds": 60}, "triggerConfig: A"),
        ({"kind": "schedule", "cron": "* * * *"}, "triggerConfig.cron: A cron"),
        (
            {"kind": "schedule", "cron": "@daily", "timezone": "Europe"},
            'triggerConfig.timezone: "Eu',
        ),
        (
            {"kind": "schedule", "cron": "@daily", "timezone": "/etc/passwd"},
            'triggerConfig.timezone: "/',
        ),
        (
            {
                "kind": "schedule",
                "cron": "@daily",
                "startAt": "2026-02-01",
                "endAt": "2026-01-01T00:00Z",
            },
            "triggerConfig.endAt: Must be later",
        ),
        (
            DAILY
            | {"startAt": "2026-01-01T12:00Z", "endAt": "2026-01-01T12:30"}
            | {"timezone": "Europe/Berlin"},
            "triggerConfig.endAt: Must be later",
        ),
        (
            DAILY | {"startAt": "2026-01-01T12:00Z", "endAt": "2026-01-01T12:00Z"},
            "triggerConfig.endAt: Must be later",
        ),
        ({"kind": "schedule", "cron": "0 0 30 2 *"}, "triggerConfig.cron: The cron expression"),
        (
            {"kind": "manual", "concurrency": {"limit": 1, "keyExpression": "run.id"}},
            "triggerConfig.concurrency.keyExpression: It can read only",
        ),
        (
            {"kind": "record_updated", "databaseId": "d", "filter": "1"},
            "triggerConfig.filter: The expression must",
        ),
        (
            {"kind": "record_matches", "databaseId": "d", "filter": {"not": {"field": "record.a"}}},
            "triggerConfig.filter.not: Use {field, op, value}",
        ),
        (
            {"kind": "record_created", "databaseId": "d", "fieldKeys": ["a"]},
            "triggerConfig.fieldKeys: Only allowed with record_updated",
        ),
        (
            {"kind": "record_date_reached", "databaseId": "d", "fieldKey": "a", "timezone": "X"},
            'triggerConfig.timezone: "X" is not',
        ),
        ({"kind": "record_created"}, "triggerConfig.databaseId: is required"),
        ({"kind": "record_matches", "databaseId": "d"}, "triggerConfig.filter: is required"),
        ({"kind": "form_submitted"}, "triggerConfig.formItemId: is required"),
        (
            {"kind": "manual", "inputSchema": {"type": "wat"}},
            "triggerConfig.inputSchema: Invalid",
        ),
        (
            {"kind": "webhook", "auth": "none", "signature": {}},
            "triggerConfig.signature: Only",
        ),
        ({"kind": "webhook", "header": "X-A"}, "triggerConfig.header: Only allowed"),
        (
            {"kind": "webhook", "auth": "none", "secretName": "A"},
            "triggerConfig.secretName: Not",
        ),
        (
            {"kind": "webhook", "signature": {"header": "X-A"}},
            "triggerConfig.signature.header: Only allowed with the scheme hmac_sha256",
        ),
        (
            {"kind": "webhook", "signature": {"scheme": "hmac_sha256"}},
            "triggerConfig.signature.header: Required",
        ),
        (
            {
                "kind": "webhook",
                "signature": {
                    "scheme": "hmac_sha256",
                    "header": "X-A",
                    "signedContent": "{timestamp}{body}",
                },
            },
            "triggerConfig.signature.signedContent: Must hold",
        ),
        (
            {"kind": "webhook", "dedupe": {"source": "header"}},
            "triggerConfig.dedupe.name: Required",
        ),
        (
            {"kind": "webhook", "dedupe": {"source": "body_hash", "name": "x"}},
            "triggerConfig.dedupe.name: Required",
        ),
        (
            {"kind": "webhook", "dedupe": {"source": "header", "name": "a b"}},
            "triggerConfig.dedupe.name: Invalid",
        ),
        (
            {"kind": "webhook", "dedupe": {"source": "path", "name": "a["}},
            "triggerConfig.dedupe.name: ",
        ),
        ({"kind": "webhook", "filter": "1 +"}, "triggerConfig.filter: The"),
        ({"kind": "webhook", "filter": "'text'"}, "triggerConfig.filter: The expression must"),
        (
            {"kind": "webhook", "filter": {"or": [{"field": "body.x", "op": "eq"}]}},
            "triggerConfig.filter.or.0: Unknown variable",
        ),
        (
            {"kind": "webhook", "filter": {"field": "vars.v", "op": "eq", "value": 1}},
            'triggerConfig.filter: Unknown variable "vars"',
        ),
        (
            {"kind": "manual", "inputSchema": {"$ref": "http://169.254.169.254/"}},
            "triggerConfig.inputSchema: Invalid",
        ),
    ],
)
def test_a_trigger_problem_names_its_place(given: Any, problem: str) -> None:
    details = trigger_problems(read_trigger(parse_trigger_config(given)))
    told = [f"{detail.path}: {detail.message}" for detail in details]
    assert any(one.startswith(problem) for one in told), told


@pytest.mark.parametrize(
    "expression",
    [
        "nodes.t.ok == 1",
        "run.source == 'webhook'",
        "vars.region == 'eu'",
        "item.x == 1",
        "index == 0",
        "record.data.n == 1",
        "coalesce(trigger.body.n, nodes.t.n) == 1",
        "trigger.body.items.exists(item, item.a == index)",
    ],
)
def test_expressions_before_the_run_read_only_trigger(expression: str) -> None:
    asked = {"concurrency": {"limit": 1, "keyExpression": expression}, "filter": expression}
    details = trigger_problems(read_trigger(parse_trigger_config({"kind": "webhook", **asked})))
    told = {detail.path: detail.message.partition(",")[0] for detail in details}
    assert told == {
        "triggerConfig.filter": "It can read only trigger",
        "triggerConfig.concurrency.keyExpression": "It can read only trigger",
    }


@pytest.mark.parametrize(
    "given",
    [
        "trigger.body.items.exists(x, x.a == 1)",
        "trigger.body.items.exists(item, item.a == 1)",
        "coalesce(trigger.body.run, trigger.body.vars.item, 1) == 1",
        "trigger.?body.?index.orValue(0) == 0",
        {"and": [{"field": "trigger.body.nodes[0]", "op": "is_empty"}]},
    ],
)
def test_a_filter_on_a_call_may_read_any_key(given: Any) -> None:
    stored = parse_trigger_config({"kind": "webhook", "filter": given})
    assert list(trigger_problems(read_trigger(stored))) == []


@pytest.mark.parametrize(
    "cron",
    [
        "* * * * *",
        "*/5 0-6,22 1,15 JAN-mar Mon-Fri",
        "0 0 31 12 7",
        "59 23 * * sun",
        "@hourly",
        "0 0 1-31/2 * *",
    ],
)
def test_a_cron_expression_that_is_fine(cron: str) -> None:
    assert cron_problem(cron) is None


@pytest.mark.parametrize(
    "cron",
    [
        *("", "@sometimes", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *"),
        *("* * * 13 *", "* * * * 8", "*/0 * * * *", "*/61 * * * *", "5-1 * * * *", "a * * * *"),
        *("1-2-3 * * * *", "1, * * * *", "-1 * * * *", "1.5 * * * *", "٣ * * * *", "* * * mon *"),
        *("1" * 10_000, "*," * 10_000, "* * * * " + "1," * 200),
    ],
)
def test_a_cron_expression_that_is_not(cron: str) -> None:
    problem = cron_problem(cron)
    assert problem is not None
    assert len(problem) < 200


SUBJECT = "01a22940-0000-7000-8000-000000000001"


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("record_created", "databaseId"),
        ("record_date_reached", "databaseId"),
        ("form_submitted", "formItemId"),
        ("data_source_finished", "dataSourceId"),
    ],
)
def test_the_subject_of_a_trigger(kind: str, key: str) -> None:
    assert str(subject_of({"kind": kind, key: SUBJECT})) == SUBJECT


@pytest.mark.parametrize(
    "config",
    [
        {"kind": "automation_failed"},
        {"kind": "data_source_finished"},
        # Its database narrows it, and is no subject.
        {"kind": "time_entry_completed", "databaseId": SUBJECT},
    ],
)
def test_a_trigger_of_any_subject(config: dict[str, Any]) -> None:
    assert subject_of(config) is None


@pytest.mark.parametrize(
    ("cron", "ranges"),
    [
        ("0 22-2 * * *", "22-23,0-2"),
        ("0 0 * * fri-mon", "fri-7,0-mon"),
        ("0 0 * nov-feb *", "nov-12,1-feb"),
        ("50-10 * * * *", "50-59,0-10"),
        ("0 0 25-5 * *", "25-31,1-5"),
    ],
)
def test_a_range_that_runs_backwards_is_written_as_two(cron: str, ranges: str) -> None:
    problem = cron_problem(cron)
    assert problem is not None
    assert problem.endswith(f"runs backwards. Write it as two ranges: {ranges}.")
    backwards = next(part for part in cron.split() if "-" in part)
    assert cron_problem(cron.replace(backwards, ranges)) is None


def test_the_attributes_of_a_run_are_short_texts() -> None:
    values = {"yes": True, "no": False, "whole": 2.0, "part": 2.5, "text": "x" * 200}
    texts = {"yes": "true", "no": "false", "whole": "2", "part": "2.5", "text": "x" * 200}
    assert as_texts(values) == texts
    assert as_texts({"none": None, "empty": "", "long": "x" * 201, "list": ["a"]}) == {}


def test_an_attribute_that_is_no_text_and_no_binding_is_a_problem() -> None:
    assert list(attribute_problems({"a": "text", "b": 1})) == []
    problem = "Must be a text of 1 to 200 characters, or a binding."
    assert list(attribute_problems({"a": "text", "b": None})) == [("attributes.b", problem)]


def test_the_key_of_an_event_has_up_to_200_characters() -> None:
    key = TypeAdapter[str](EventKey)
    assert key.validate_python("k" * 200) == "k" * 200
    for wrong in ("", "k" * 201):
        with pytest.raises(ValueError, match="should have at"):
            key.validate_python(wrong)
