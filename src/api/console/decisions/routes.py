"""Deciding an approval by the link of a mail, without a session (ADR 0087).

Opening the link asks; sending the form decides. Scanners of mail open links, and send no forms.
"""

from collections.abc import Mapping

from starlette.responses import Response

from api.console.entered import given, read_as
from api.console.rendering import bare
from api.console.routing import page_router
from api.console.runs.actions import Decision
from api.kernel.routing import Access, ApiRequest
from models.automation.waits.approvals import Question, decide_by_link, question_of
from models.automation.waits.commands import ResumeNode
from models.automation.waits.rules import UnknownLinkError, VoidLinkError
from runtime.errors import ConflictError, ValidationError

router = page_router()

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
