"""Actions on a run, and decisions of an approval by the link of a mail (ADR 0087).

A link needs no session. Opening it asks; sending the form decides. Scanners of mail open links, and
send no forms.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import ConfigDict
from starlette.responses import Response

from api.console.entered import Entered, Form, given, read_as, redisplays, texts_of
from api.console.forms import done, paged, read_object
from api.console.rendering import bare, console_page, local_path, see_other
from api.console.resource_pages import act
from api.console.routing import page_router
from api.console.words import indented
from api.kernel.routing import Access, ApiRequest
from api.routers.automation import automation_runs as api
from api.routers.automation.automation_runs import RUN, START
from api.routers.automation.automations import WRITE
from models.automation.automation_runs import retries
from models.automation.automation_runs.commands import run_from_node
from models.automation.automation_runs.queries import load_run
from models.automation.automation_runs.shapes import RetryRun, RunFromNode
from models.automation.run_overviews import overview
from models.automation.waits import commands as waits
from models.automation.waits.approvals import Question, decide_by_link, question_of
from models.automation.waits.commands import ResumeNode
from models.automation.waits.rules import UnknownLinkError, VoidLinkError
from models.core.base import JsonObject
from runtime.errors import ConflictError, RunError, ValidationError

router = page_router()

_RUN = RUN.removeprefix("/v1")
ANSWER = "answer."


class Retry(Form):
    """The place a retry begins at, and the version it takes."""

    from_: Literal["failed", "start"]
    version: Literal["original", "published", "draft"] = "original"

    model_config = ConfigDict(alias_generator=lambda name: name.rstrip("_"))


class Decision(Form):
    """A decision; answers to questions are fields named `answer.<kind>.<key>`."""

    decision: Literal["approved", "rejected"]
    comment: str | None = None

    model_config = ConfigDict(extra="allow")

    def answers(self) -> JsonObject | None:
        """The answers by question, as the kind of each wants them. Raises ValidationError."""
        answers: dict[str, Any] = {}
        for name, text in (self.model_extra or {}).items():
            word, kind, key = (*name.split(".", 2), "", "")[:3]
            if f"{word}." != ANSWER or not key:
                raise ValidationError.at(name[:100], "Unknown field.")
            answers[key] = _answer(name, kind, text)
        return answers or None


class SendEvent(Form):
    """The data that a node waits for, as a person wrote it."""

    data: str = "{}"
    scope_key: str = ""


class Decide(Decision):
    """A decision on a node, and the page that is shown after it."""

    scope_key: str = ""
    next: str | None = None


def _answer(name: str, kind: str, text: str) -> object:
    if kind == "checkbox":
        return text == "true"
    if kind != "number":
        return text
    try:
        return int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        raise ValidationError.at(name.rpartition(".")[2], "must be a number") from None


act(
    router,
    f"{_RUN}/cancel",
    api.cancel_automation_run,
    message="Run cancelled",
    then="/runs/{runId}",
)


@router.post(f"{_RUN}/retry", access=paged(START), errors=[RunError])
async def retry_run(request: ApiRequest, body: Retry) -> Response:
    """Run an ended run again, and lead to the new one."""
    ids = request.ids
    wanted = RetryRun.model_validate({"from": body.from_, "version": body.version})
    run = await retries.retry(
        request.work, request.actor, ids["automationId"], ids["runId"], wanted
    )
    return see_other(f"/runs/{run.id}")


@router.post(f"{_RUN}/nodes/{{node}}/resume", access=paged(Access(idempotent=True)))
async def decide(request: ApiRequest, body: Decide) -> Response:
    """Decide an approval."""
    ids = request.ids
    response = ResumeNode(
        decision=body.decision,
        comment=body.comment,
        data=body.answers(),
        scopeKey=body.scope_key,
    )
    await waits.resume(
        request.work,
        request.actor,
        ids["automationId"],
        ids["runId"],
        request.path_params["node"],
        response,
    )
    word = "Approved" if body.decision == "approved" else "Rejected"
    return done(request, f"{word}. Run resumed.", local_path(body.next))


@router.post(f"{_RUN}/nodes/{{node}}/event", access=paged(WRITE))
async def send_event(request: ApiRequest, body: SendEvent) -> Response:
    """Give a node the event that it waits for."""
    ids = request.ids
    response = ResumeNode(data=read_object("data", body.data), scopeKey=body.scope_key)
    place = ids["automationId"], ids["runId"], request.path_params["node"]
    await waits.resume(request.work, request.actor, *place, response)
    return done(request, "Event sent. Run resumed.", f"/runs/{ids['runId']}")


_PATH = f"{RUN.removeprefix('/v1')}/from-node"
_SHOW = replace(paged(START), idempotent=False, starts_run=False)


class FromNode(Form):
    """The node, the version, the payload, and outputs in place of the ones that the run had."""

    node_id: str = ""
    version: Literal["original", "published"] = "original"
    payload: str = "{}"
    outputs: str = "{}"
    alone: Literal["on"] | None = None


@router.get(_PATH, access=_SHOW)
async def get_from_node(request: ApiRequest, node_id: str | None = None) -> Response:
    """Choose where a run begins, and what it begins with."""
    run = await load_run(
        request.work, request.actor, request.ids["automationId"], request.ids["runId"]
    )
    begin = FromNode(nodeId=node_id or "", payload=indented(run.trigger_payload))
    return await _form(request, Entered(texts_of(begin)))


async def _form(request: ApiRequest, entered: Entered) -> Response:
    body = FromNode.model_validate(entered.texts)
    viewed = await overview(request.work, request.actor, request.ids["runId"])
    start = {"nodeId": _first(viewed.graph.nodes), "replayOfRunId": str(viewed.run.id)}
    return await console_page(
        request,
        "from_node.html",
        (api.run_automation_from_node, start),
        viewed=viewed,
        body=body,
        entered=entered,
    )


@router.post(_PATH, access=paged(START), errors=[RunError])
@redisplays(_form)
async def run_from_chosen_node(request: ApiRequest, body: FromNode) -> Response:
    """Begin a run at a node, and lead to it."""
    automation_id, run_id = request.ids["automationId"], request.ids["runId"]
    earlier = await load_run(request.work, request.actor, automation_id, run_id)
    outputs = read_object("outputs", body.outputs)
    values: JsonObject = {
        "nodeId": body.node_id,
        "replayOfRunId": str(run_id),
        "triggerPayload": read_object("payload", body.payload),
    }
    if body.version == "original":
        values["automationVersionId"] = str(earlier.automation_version_id)
    if body.alone is not None:
        values["nodes"] = [body.node_id]
    elif outputs:
        values["nodes"] = outputs
    wanted = read_as(RunFromNode, values)
    outcome = await run_from_node(request.work, request.actor, automation_id, wanted)
    return see_other(f"/runs/{outcome.id}")


def _first(nodes: Sequence[object]) -> str:
    return str(getattr(nodes[0], "id", "")) if nodes else ""


LINK = "/approvals/{decisionToken}"
"""The name of the parameter keeps it out of logs, as that of every token."""
_ANYBODY = Access(credential="none", page=True)
_WORDS = {"approved": "Approved", "rejected": "Rejected"}


@router.get(LINK, access=_ANYBODY)
async def get_question(request: ApiRequest) -> Response:
    """Ask, and decide nothing."""
    try:
        return _asked(request, await _question(request))
    except (UnknownLinkError, VoidLinkError) as refusal:
        return _over(request, refusal)


@router.post(LINK, access=_ANYBODY)
async def decide_by_form(request: ApiRequest, body: Decision) -> Response:
    """Take the decision of the person whom the link is for, once."""
    try:
        question = await _question(request)
    except (UnknownLinkError, VoidLinkError) as refusal:
        return _over(request, refusal)
    try:
        async with request.work.savepoint():
            await decide_by_link(request.work, question, _response(body))
    except ValidationError as refusal:
        return _asked(request, question, body, refusal)
    except ConflictError:
        # Someone else was faster, or the same button was pressed twice.
        return _over(request, VoidLinkError())
    message = "The run resumes when all required decisions are made."
    return bare(request, "decided.html", title=_WORDS[body.decision], message=message)


async def _question(request: ApiRequest) -> Question:
    request.services.limits.take_visit(request.scope)
    token = request.path_params["decisionToken"]
    return await question_of(request.work, request.services.keys, token)


def _response(body: Decision) -> ResumeNode:
    fields = {"decision": body.decision, "comment": body.comment, "data": body.answers()}
    return read_as(ResumeNode, given(fields))


def _asked(
    request: ApiRequest,
    question: Question,
    body: Decision | None = None,
    refusal: ValidationError | None = None,
) -> Response:
    details = () if refusal is None else refusal.details
    problems = {one.path.removeprefix("data."): one.message for one in details}
    keys = {one.key for one in question.approval.questions}
    return bare(
        request,
        "decision.html",
        200 if refusal is None else refusal.status,
        question=question,
        approval=question.approval,
        comment="" if body is None else body.comment or "",
        texts=_texts(body),
        problems=problems,
        others=[f"{path}: {text}" for path, text in problems.items() if path not in keys],
    )


def _texts(body: Decision | None) -> Mapping[str, object]:
    """The answers as they were typed, by the names of their inputs."""
    return {} if body is None else body.model_extra or {}


def _over(request: ApiRequest, refusal: UnknownLinkError | VoidLinkError) -> Response:
    return bare(
        request,
        "decided.html",
        refusal.status,
        title="Nothing to decide",
        message=refusal.message,
    )
