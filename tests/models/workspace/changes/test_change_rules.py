"""Change sets: what is at stake, what refers to what, and what is applied when."""

from typing import Any

import pytest

from models.core.base import JsonObject
from models.core.http_requests import HIDDEN, Credential, Place, with_values
from models.workspace.changes.commands import operation_credentials
from models.workspace.changes.operations import NOTES, check_operations
from models.workspace.changes.rules import (
    RULES,
    Approval,
    ChangeStatus,
    OperationKind,
    Outcome,
    ResultStatus,
    Stake,
    end_of,
    named_in,
    resolved,
    stake_of,
    waits_for,
)
from models.workspace.changes.shapes import Operation
from runtime.errors import ValidationError
from runtime.ids import new_id

Json = dict[str, Any]


def operations(*given: Json) -> list[Operation]:
    return [Operation.model_validate(one) for one in given]


def leads(**more: Any) -> Json:
    return {"kind": "create_database", "ref": "leads", "input": {"label": "Leads", **more}}


def problem_of(*given: Json) -> list[str]:
    with pytest.raises(ValidationError) as refused:
        check_operations(operations(*given))
    return [detail.path for detail in refused.value.details]


def test_every_kind_has_a_rule() -> None:
    assert RULES.keys() == set(OperationKind)


@pytest.mark.parametrize("kind", OperationKind)
def test_every_kind_is_documented_by_a_valid_example(kind: OperationKind) -> None:
    check_operations(operations({"kind": kind.value, "input": NOTES[kind].example}))


@pytest.mark.parametrize(
    ("kind", "given", "stake"),
    [
        ("create_item", {"kind": "page"}, Stake.NEVER_ASK),
        ("create_item", {"kind": "data_source"}, Stake.ASK),
        ("create_item", {"kind": "form", "config": {"public": True}}, Stake.ALWAYS_ASK),
        ("update_item", {"itemId": "x", "title": "New"}, Stake.ASK),
        ("update_item", {"itemId": "x", "accessMode": "open"}, Stake.ALWAYS_ASK),
        ("update_item", {"itemId": {"ref": "x.item"}, "title": "New"}, Stake.NEVER_ASK),
        ("create_field", {"databaseId": "x"}, Stake.ASK),
        ("create_field", {"databaseId": {"ref": "x"}}, Stake.NEVER_ASK),
        ("delete_record", {"recordId": "x"}, Stake.ALWAYS_ASK),
        ("delete_item", {"itemId": {"ref": "x.item"}}, Stake.ALWAYS_ASK),
        ("publish_automation", {"automationId": {"ref": "x"}}, Stake.ALWAYS_ASK),
        ("create_automation", {"enabled": True}, Stake.ALWAYS_ASK),
    ],
)
def test_stakes(kind: str, given: Json, stake: Stake) -> None:
    assert stake_of(OperationKind(kind), given) is stake


def test_references_become_ids() -> None:
    id_ = new_id()
    given = {
        "a": [{"ref": "leads.views.all"}],
        "b": {"ref": "Not a name"},
        "c": {"ref": "x", "d": 1},
    }
    assert list(named_in(given)) == ["leads.views.all"]
    assert resolved(given, {"leads.views.all": id_})["a"] == [str(id_)]
    with pytest.raises(ValidationError):
        resolved(given, {})


def test_operations_refer_to_those_before_them() -> None:
    record = {"kind": "create_record", "input": {"databaseId": {"ref": "leads"}, "title": "One"}}
    check_operations(operations(leads(), record))
    assert problem_of(record, leads()) == ["operations.0.input"]
    cycle = {"kind": "create_item", "ref": "a", "input": {"kind": "folder", "title": "A"}}
    cycle["input"]["parentItemId"] = {"ref": "a"}  # type: ignore[index]
    assert problem_of(cycle) == ["operations.0.input"]
    assert problem_of(leads(), leads()) == ["operations.1.ref"]


def test_an_input_is_an_object_and_no_reference() -> None:
    whole = {"kind": "create_item", "input": {"ref": "leads"}}
    assert set(problem_of(leads(), whole)) >= {"operations.1.input.ref"}


def test_each_error_is_named_by_its_path() -> None:
    assert problem_of(leads(colour="red")) == ["operations.0.input.colour"]
    assert problem_of({"kind": "delete_record", "input": {}}) == ["operations.0.input.recordId"]
    with pytest.raises(ValueError, match="kind"):
        operations({"kind": "drop_table", "input": {}})


PENDING = Outcome(ResultStatus.PENDING)
APPLIED = Outcome(ResultStatus.APPLIED)
FAILED = Outcome(ResultStatus.FAILED)
SKIPPED = Outcome(ResultStatus.SKIPPED, needs_approval=True)


@pytest.mark.parametrize(
    ("stake", "approval", "applied"),
    [
        (Stake.NEVER_ASK, Approval(), True),
        (Stake.ASK, Approval(), False),
        (Stake.ASK, Approval(every=True), True),
        (Stake.ASK, Approval(indexes={0}), True),
        (Stake.ALWAYS_ASK, Approval(every=True), False),
        (Stake.ALWAYS_ASK, Approval(indexes={0}), True),
        (Stake.ALWAYS_ASK, Approval(every=True, indexes={1}), False),
    ],
)
def test_the_approvers_of_each_operation(stake: Stake, approval: Approval, applied: bool) -> None:
    waiting = waits_for(0, (), [PENDING], stake, approval)
    assert (waiting is None) is applied
    assert waiting is None or waiting == SKIPPED


@pytest.mark.parametrize(
    ("before", "becomes"),
    [
        (APPLIED, None),
        (FAILED, ResultStatus.FAILED),
        (SKIPPED, ResultStatus.SKIPPED),
        (PENDING, ResultStatus.SKIPPED),
    ],
)
def test_nothing_is_built_on_what_is_not_there(
    before: Outcome, becomes: ResultStatus | None
) -> None:
    waiting = waits_for(1, {0}, [before, PENDING], Stake.NEVER_ASK, Approval())
    assert (None if waiting is None else waiting.status) == becomes


@pytest.mark.parametrize(
    ("outcomes", "end"),
    [
        ([APPLIED, APPLIED], ChangeStatus.APPLIED),
        ([APPLIED, FAILED], ChangeStatus.PARTIALLY_APPLIED),
        ([FAILED, FAILED], ChangeStatus.FAILED),
        ([APPLIED, SKIPPED], ChangeStatus.AWAITING_APPROVAL),
        ([FAILED, SKIPPED], ChangeStatus.AWAITING_APPROVAL),
    ],
)
def test_the_status_of_an_ended_change_set(outcomes: list[Outcome], end: ChangeStatus) -> None:
    assert end_of(outcomes) is end


_TOKEN = "the token"


@pytest.mark.parametrize(
    ("config", "place"),
    [
        ({"headers": {"authorization": _TOKEN, "Accept": "*/*"}}, ("headers", "authorization")),
        ({"headers": {"X-API-Key": 7}}, ("headers", "X-API-Key")),
        ({"auth": {"type": "bearer", "token": _TOKEN}}, ("auth", "token")),
        (
            {"auth": {"type": "literal", "value": {"type": "header", "name": "K", "value": "v"}}},
            ("auth", "value", "value"),
        ),
        (
            {"headers": {"Cookie": {"type": "template", "value": "a={{ trigger.a }}"}}},
            ("headers", "Cookie", "value"),
        ),
        ({"auth": {"type": "expression", "value": "{'token': 'x'}"}}, ("auth", "value")),
        ({"auth": {"type": "bearer", "token": {"type": "secret", "value": "name"}}}, None),
        ({"auth": {"type": "bearer", "token": {"ref": "made"}}}, None),
        ({"auth": {"type": "secret", "value": "name"}}, None),
        ({"auth": {"type": "bearer", "secretName": "name"}}, None),
        ({"headers": {"Cookie": None, "X-Other": _TOKEN}}, None),
    ],
)
def test_credentials_are_found_in_each_place(config: JsonObject, place: Place | None) -> None:
    given: JsonObject = {"graph": {"nodes": [{"kind": "http_request", "config": config}]}}
    at = ("graph", "nodes", 0, "config")
    found = operation_credentials(OperationKind.CREATE_AUTOMATION, given)
    assert [one.place for one in found] == ([] if place is None else [(*at, *place)])
    hidden = with_values(given, [(one.place, one.mask) for one in found])
    assert operation_credentials(OperationKind.CREATE_AUTOMATION, hidden) == [
        Credential(one.place, HIDDEN) for one in found
    ]
    assert with_values(hidden, [(one.place, one.value) for one in found]) == given


def test_a_record_may_have_fields_of_any_name() -> None:
    given: JsonObject = {"data": {"auth": {"token": "x"}}}
    assert operation_credentials(OperationKind.CREATE_RECORD, given) == []
