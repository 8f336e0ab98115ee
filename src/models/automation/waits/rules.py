"""Pure rules of waiting nodes: which responses count, and how they resolve a wait."""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from models.automation.automations.rules.graph import configs, wait_configs
from models.automation.automations.rules.graph.kinds import EdgeOutcome, NodeKind, shorten
from models.automation.automations.rules.language.bindings import holds_binding, without_literals
from models.automation.automations.rules.planner.plan import Plan, enclosing, homes_of
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.expressions.rules.cel_text import paths
from models.core.expressions.rules.errors import BindingError, ExpressionError
from models.core.expressions.rules.expressions import Paths, part
from models.core.expressions.rules.json_values import readable
from models.core.problems import refuse
from models.core.values import is_blank
from runtime import errors


class NotResumableError(errors.ConflictError):
    """The node does not wait: it has ended, its run has, or it is of another kind."""


class DecidedAlreadyError(errors.ConflictError):
    """Each member decides once."""

    def __init__(self) -> None:
        super().__init__("You have already decided; decisions can't be changed.")


class OnlyAskedError(errors.DeniedError):
    """The node takes decisions only of those whom it asks (`allowEditors`)."""

    def __init__(self) -> None:
        super().__init__("Only the assignees of the node and members with its role can decide.")


class OwnRunError(errors.DeniedError):
    """The starter of a run does not decide it, unless its node allows that."""

    def __init__(self) -> None:
        super().__init__(
            "The member who started the run can't decide, unless the node has `allowSelf`."
        )


class UnknownLinkError(errors.NotFoundError):
    """The token of a link to decide is not one of ours."""

    def __init__(self) -> None:
        super().__init__("link")
        self.message = "Invalid link. Copy the whole link and try again."


class VoidLinkError(errors.ConflictError):
    """A link to decide counts no longer: it is not told for which reason."""

    def __init__(self) -> None:
        super().__init__(
            "This link is no longer valid: it was used or expired, the decision was already made,"
            " or you can no longer make it."
        )


@dataclass(frozen=True, slots=True)
class Response:
    """One decision, or one piece of data. Who used a resume URL has no `user_id`."""

    user_id: str | None
    at: str
    decision: str | None = None
    comment: str | None = None
    data: JsonObject | None = None
    event_id: str | None = None
    """The event that brought the data."""

    @property
    def by_url(self) -> bool:
        """True when it came by a resume URL."""
        return self.user_id is None and self.event_id is None

    def repeats(self, response: "Response") -> bool:
        """True when this is the other response sent again."""
        return replace(self, at=response.at, event_id=response.event_id) == response


@dataclass(frozen=True, slots=True)
class Resolution:
    """The end of a wait: the outcome that edges are followed by, and the node's output."""

    outcome: str
    output: JsonObject


RESUMABLE = (NodeKind.APPROVAL, NodeKind.WAIT_EVENT)

_TERMS = {
    NodeKind.APPROVAL: (
        "assignees",
        "role",
        "required",
        "title",
        "message",
        "form",
        "allowSelf",
        "allowEditors",
        "reminderSeconds",
    ),
    NodeKind.WAIT_EVENT: ("filter", "resumeUrl"),
}
"""The parameters of a node that are kept while it waits."""

_RESOLVED_BY = {
    NodeKind.APPROVAL: ("required", "form", "allowSelf"),
    NodeKind.WAIT_EVENT: ("filter", "resumeUrl"),
}
"""The parameters among them that decide on a response."""

_VARIABLES = "variables"
"""In the terms of a node that waits for an event: what its filter reads of the run."""


def terms_of(kind: str, parameters: JsonObject, variables: JsonObject) -> JsonObject:
    """The terms of a node that waits, with what its filter reads of the run."""
    terms = _chosen(_TERMS[NodeKind(kind)], parameters)
    return {**terms, _VARIABLES: variables} if variables else terms


def _early_terms(kind: str, parameters: JsonObject) -> JsonObject | None:
    """The terms of a node that does not wait yet; None if they depend on its run."""
    terms: JsonObject = without_literals(_chosen(_RESOLVED_BY[NodeKind(kind)], parameters))
    depends = holds_binding(terms) or run_reads(terms.get("filter") or "")
    return None if depends else terms


def _chosen(names: Sequence[str], values: JsonObject) -> JsonObject:
    return {name: values[name] for name in names if name in values}


def takes_editors(parameters: JsonObject) -> bool:
    """Tell whether an approval that does not wait yet certainly lets editors decide."""
    chosen = without_literals(_chosen(("allowEditors",), parameters))
    return chosen.get("allowEditors", True) is True


def check_form(kind: str, response: Response) -> None:
    """An approval takes a decision, an event does not. Raises ValidationError."""
    if kind == NodeKind.APPROVAL and response.decision is None:
        raise errors.ValidationError.at("decision", "Must be approved or rejected.")
    if kind == NodeKind.WAIT_EVENT and response.decision is not None:
        raise errors.ValidationError.at(
            "decision", "The node is waiting for data, not for a decision."
        )


def resolve(
    kind: str,
    terms: JsonObject,
    starter: Id | None,
    earlier: Sequence[Response],
    response: Response,
) -> Resolution | None:
    """The resolution that a response brings about; None while the wait continues.

    Raises ValidationError, ConflictError, DeniedError or NotFoundError for one that does not count.
    """
    check_form(kind, response)
    deciding = _chosen(_RESOLVED_BY[NodeKind(kind)], terms)
    if kind == NodeKind.APPROVAL:
        return decide_approval(
            wait_configs.ApprovalTerms.model_validate(deciding), starter, earlier, response
        )
    config = configs.WaitEventConfig.model_validate(deciding)
    return receive_event(config, terms.get(_VARIABLES, {}), response)


def replay(
    kind: str, terms: JsonObject, starter: Id | None, responses: Sequence[Response]
) -> tuple[list[Response], Resolution | None]:
    """The responses that count among those received early, and the resolution if there is one."""
    accepted_responses: list[Response] = []
    for response in responses:
        try:
            resolution = resolve(kind, terms, starter, accepted_responses, response)
        except errors.PlatformError:
            continue
        accepted_responses.append(response)
        if resolution is not None:
            return accepted_responses, resolution
    return accepted_responses, None


def check_early(
    kind: str,
    parameters: JsonObject,
    starter: Id | None,
    earlier: Sequence[Response],
    response: Response,
) -> None:
    """Refuse a response that cannot count when the node waits, as far as its config tells now.

    `earlier` are the responses kept so far. The parameters are unresolved. Raises as `resolve`.
    """
    check_form(kind, response)
    terms = _early_terms(kind, parameters)
    if terms is None:
        return
    counted, resolution = replay(kind, terms, starter, earlier)
    if resolution is not None:
        raise NotResumableError("A stored response already resolves the node once it waits.")
    resolve(kind, terms, starter, counted, response)


def timed_out(kind: str, responses: Sequence[Response]) -> Resolution:
    return approval_timed_out(responses) if kind == NodeKind.APPROVAL else event_timed_out()


def is_asked(config: configs.ApprovalConfig, actor: Actor) -> bool:
    """True when the node asks for the decision of the actor."""
    return actor.user_id in config.assignees or actor.role is config.role


def check_decider(terms: JsonObject, actor: Actor) -> None:
    """Refuse members who are not assigned, unless editors may decide as well. Raises
    OnlyAskedError.
    """
    config = configs.ApprovalConfig.model_validate(terms)
    if not config.allow_editors and not is_asked(config, actor):
        raise OnlyAskedError


def decide_approval(
    terms: wait_configs.ApprovalTerms,
    starter: Id | None,
    earlier: Sequence[Response],
    response: Response,
) -> Resolution | None:
    """The resolution of an approval by a decision and the earlier ones; None while more are needed.

    A rejection needs no answers, an approval needs the required ones. Raises OwnRunError,
    DecidedAlreadyError and ValidationError.
    """
    if not terms.allow_self and starter is not None and response.user_id == str(starter):
        raise OwnRunError
    if any(previous.user_id == response.user_id for previous in earlier):
        raise DecidedAlreadyError
    approves = response.decision == EdgeOutcome.APPROVED
    check_answers(terms.form, response.data or {}, whole=approves)
    decisions = [*earlier, response]
    if not approves:
        return Resolution(EdgeOutcome.REJECTED, approval_output(response, decisions))
    approvals = sum(vote.decision == EdgeOutcome.APPROVED for vote in decisions)
    if approvals < terms.required:
        return None
    return Resolution(EdgeOutcome.APPROVED, approval_output(response, decisions))


def approval_timed_out(decisions: Sequence[Response]) -> Resolution:
    output = {**approval_output(None, decisions), "decision": EdgeOutcome.TIMEOUT.value}
    return Resolution(EdgeOutcome.TIMEOUT, output)


def approval_output(last: Response | None, decisions: Sequence[Response]) -> JsonObject:
    """`{decision, comment, data, decisions}`; of answers to the same question the later wins."""
    data: dict[str, Any] = {}
    for one in decisions:
        data |= one.data or {}
    return {
        "decision": None if last is None else last.decision,
        "comment": None if last is None else last.comment,
        "data": data,
        "decisions": shown_decisions(decisions),
    }


def shown_decisions(decisions: Sequence[Response]) -> list[JsonObject]:
    """The decision of each person, oldest first."""
    return [
        {"userId": one.user_id, "decision": one.decision, "comment": one.comment, "at": one.at}
        for one in decisions
    ]


MAX_TEXT = 20_000
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def check_answers(
    form: Sequence[wait_configs.ApprovalField], data: JsonObject, *, whole: bool
) -> None:
    """Refuse what is no answer; `whole` demands the required ones too. No form takes any data.

    Raises ValidationError at `data.<key>`.
    """
    if form:
        refuse(list(_problems(form, data, whole=whole)))


def _problems(
    form: Sequence[wait_configs.ApprovalField], data: JsonObject, *, whole: bool
) -> Iterator[errors.Detail]:
    known = {field.key: field for field in form}
    for key in sorted(data.keys() - known.keys()):
        yield errors.Detail(f"data.{shorten(key)}", "is not a question of this form")
    for key, field in known.items():
        value = data.get(key)
        if is_blank(value):
            if whole and field.required:
                yield errors.Detail(f"data.{key}", "is required")
        elif whole and field.required and value is False:
            yield errors.Detail(f"data.{key}", "is required: it must be true")
        elif (problem := _CHECKS[field.kind](field, value)) is not None:
            yield errors.Detail(f"data.{key}", problem)


def _text(_: wait_configs.ApprovalField, value: object) -> str | None:
    if not isinstance(value, str):
        return "must be text"
    return None if len(value) <= MAX_TEXT else f"has more than {MAX_TEXT} characters"


def _number(_: wait_configs.ApprovalField, value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "must be a number"
    return None if math.isfinite(value) else "must be a number"


def _checkbox(_: wait_configs.ApprovalField, value: object) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _select(field: wait_configs.ApprovalField, value: object) -> str | None:
    return None if value in field.options else "must be one of the options"


def _date(_: wait_configs.ApprovalField, value: object) -> str | None:
    try:
        if isinstance(value, str) and _DATE.fullmatch(value):
            date.fromisoformat(value)
            return None
    except ValueError:
        pass
    return "must be a date such as 2026-01-31"


_CHECKS: Mapping[str, Callable[[wait_configs.ApprovalField, Any], str | None]] = {
    "text": _text,
    "number": _number,
    "checkbox": _checkbox,
    "select": _select,
    "date": _date,
}


def receive_event(
    config: configs.WaitEventConfig, variables: JsonObject, response: Response
) -> Resolution:
    """The resolution by this data; `variables` are what the filter reads of the run.

    Raises ValidationError for data that the filter rejects, NotFoundError for a resume URL that the
    node does not have.
    """
    if response.by_url and not config.resume_url:
        raise errors.NotFoundError("resume URL")
    data = response.data or {}
    if config.filter is not None:
        try:
            known = readable({**variables, "data": data})
            passes = wait_configs.event_filter(config.filter).run(known) is True
        except ExpressionError as error:
            raise errors.ValidationError.at("data", f"The node's filter fails: {error}") from None
        if not passes:
            raise errors.ValidationError.at(
                "data", f"The data does not match the node's filter: {config.filter}"
            )
    by = {} if response.user_id is None else {"resumedBy": response.user_id}
    return Resolution(EdgeOutcome.ALWAYS, {"data": data, **by})


def event_timed_out() -> Resolution:
    return Resolution(EdgeOutcome.TIMEOUT, {"data": None})


MAX_BYTES_READ = 16 * 1024
"""The most that one filter may read of its run, as JSON."""


def run_reads(text: str) -> dict[str, Paths]:
    """The paths that a filter reads, by the variable of the run that they begin at."""
    return {name: found for name in wait_configs.RUN_VARIABLES if (found := paths(text, name))}


def values_read(reads: Mapping[str, Paths], variables: Mapping[str, Any]) -> JsonObject:
    """Just the part of the variables that is read. Raises BindingError when that is too large.

    They are taken when the node begins to wait, so that an event that meets very many waiting nodes
    needs no more than their rows.
    """
    values = {name: part(variables[name], paths_) for name, paths_ in reads.items()}
    if len(json.dumps(values, ensure_ascii=False).encode("utf-8", "replace")) > MAX_BYTES_READ:
        raise BindingError(
            f"The filter reads more than {MAX_BYTES_READ // 1024} KiB of the run; "
            "let it select less."
        )
    return values


_INDEX = re.compile(r"0|[1-9]\d{0,5}")


def is_scope_of(plan: Plan, node_id: str, scope_key: str) -> bool:
    """True when a node of the plan can run in this scope."""
    around = _loops_around(plan, node_id)
    steps = scope_key.split("/") if scope_key else []
    if len(steps) != len(around):
        return False
    for loop, step in zip(around, steps, strict=True):
        name, _, index = step.rpartition(":")
        if name != loop or not _INDEX.fullmatch(index) or int(index) >= configs.MAX_ITEMS:
            return False
    return True


def scope_near(plan: Plan, node_id: str, scope_key: str) -> str | None:
    """The scope in which a node runs as seen from another; None when there is more than one."""
    around = _loops_around(plan, node_id)
    steps = scope_key.split("/") if scope_key else []
    shared = steps[: len(around)]
    same = tuple(step.rpartition(":")[0] for step in shared) == around
    return "/".join(shared) if same else None


def _loops_around(plan: Plan, node_id: str) -> tuple[str, ...]:
    return enclosing(node_id, homes_of([node.id for node in plan.nodes], plan.edges))
