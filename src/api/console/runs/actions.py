"""Actions on a run: each does what the operation of the same path does, and demands the same."""

from typing import Any, Literal

from pydantic import ConfigDict
from starlette.responses import Response

from api.console.forms import Form, done, paged, read_object
from api.console.rendering import see_other
from api.console.routing import page_router
from api.console.shell import local_path
from api.kernel.routing import Access, ApiRequest
from api.routers.automation.automation_runs import RUN, START
from api.routers.automation.automations import WRITE
from models.automation.automation_runs import commands, retries
from models.automation.automation_runs.shapes import RetryRun
from models.automation.waits import commands as waits
from models.automation.waits.shapes import ResumeNode
from models.core.base import JsonObject
from runtime.errors import RunError, ValidationError

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
                raise ValidationError.at(name[:100], "This form has no such field.")
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


@router.post(f"{_RUN}/cancel", access=paged(WRITE))
async def cancel_run(request: ApiRequest) -> Response:
    """Cancel a run."""
    ids = request.ids
    await commands.cancel(request.work, request.actor, ids["automationId"], ids["runId"])
    return done(request, "The run is cancelled.", f"/runs/{ids['runId']}")


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
    return done(request, f"{word}. The run goes on.", local_path(body.next))


@router.post(f"{_RUN}/nodes/{{node}}/event", access=paged(WRITE))
async def send_event(request: ApiRequest, body: SendEvent) -> Response:
    """Give a node the event that it waits for."""
    ids = request.ids
    response = ResumeNode(data=read_object("data", body.data), scopeKey=body.scope_key)
    place = ids["automationId"], ids["runId"], request.path_params["node"]
    await waits.resume(request.work, request.actor, *place, response)
    return done(request, "The event is sent. The run goes on.", f"/runs/{ids['runId']}")
