"""The form of an operation over runs: what was ticked in the list, and what is to be done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from api.console.entered import Fields, read_as
from api.console.forms import read_json
from models.automation.automation_runs.run_queries import WorkspaceRunQuery
from models.automation.run_operations.rules import OperationAction
from models.automation.run_operations.selection import frozen
from models.automation.run_operations.shapes import CreateRunOperation
from models.core.base import JsonObject
from runtime.errors import ValidationError

NONE_TICKED = "No run is ticked. Tick some in the list, or take all that fit its filters."
_FILTER = "filter."


@dataclass(frozen=True, slots=True)
class Selected:
    """The runs of a form: their ids, or a filter. The form of the next page has them hidden."""

    run_ids: Sequence[str]
    filters: Mapping[str, str]

    @property
    def hidden(self) -> Mapping[str, str]:
        """The fields that stand for it."""
        if self.run_ids:
            return {"selection": "ticked", **{f"run.{run_id}": "on" for run_id in self.run_ids}}
        fields = {f"{_FILTER}{name}": text for name, text in self.filters.items()}
        return {"selection": "all", **fields}

    @property
    def body(self) -> JsonObject:
        """Its part of the body of the operation."""
        if self.run_ids:
            return {"runIds": list(self.run_ids)}
        return {"filter": dict(self.filters)}


def selected(fields: Fields, now: datetime) -> Selected:
    """The runs that a form means. Raises ValidationError when it means none.

    A period becomes the moments that bound it, so that what is confirmed is what was previewed.
    """
    match fields.texts.get("selection", "ticked"):
        case "all":
            return Selected((), _filters(fields, now))
        case "page":
            run_ids = fields.texts.get("shown", "").split()
        case _:
            run_ids = fields.checked("run")
    if not run_ids:
        raise ValidationError.at("", NONE_TICKED)
    return Selected(run_ids, {})


def _filters(fields: Fields, now: datetime) -> dict[str, str]:
    names = [name.removeprefix(_FILTER) for name in fields.texts if name.startswith(_FILTER)]
    query = read_as(WorkspaceRunQuery, {name: fields.texts[f"{_FILTER}{name}"] for name in names})
    return {name: str(value) for name, value in frozen(query, now).wire.items()}


def action_of(fields: Fields) -> OperationAction:
    """The action of a form. Raises ValidationError."""
    text = fields.texts.get("action", "")
    if text not in set(OperationAction):
        raise ValidationError.at("action", "Choose to cancel, retry or resume.")
    return OperationAction(text)


def operation_of(fields: Fields, now: datetime) -> CreateRunOperation:
    """The body of the operation that a form stands for. Raises ValidationError."""
    return read_as(CreateRunOperation, values_of(fields, now))


def values_of(fields: Fields, now: datetime) -> JsonObject:
    """The same as JSON, for the equal call. Raises ValidationError."""
    texts, action = fields.texts, action_of(fields)
    values: JsonObject = {"action": action.value, **selected(fields, now).body}
    if action is OperationAction.RETRY:
        values["retry"] = {"from": texts.get("from", "failed")}
        values["retry"] |= {"version": "published"} if texts.get("version") == "published" else {}
        values["retry"] |= {"again": True} if "again" in texts else {}
    if action is OperationAction.RESUME:
        node_id = {"nodeId": texts["nodeId"]} if texts.get("nodeId") else {}
        values["resume"] = {**node_id, "data": read_json("data", texts.get("data", "{}"))}
    if texts.get("rate"):
        values["rate"] = _number(texts["rate"])
    return values


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValidationError.at("rate", "must be a number") from None
