"""The questions of a form: added, worded, ordered, taken out."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from starlette.responses import Response

from api.console.entered import BLANK, Entered, Fields, attempt, read_as
from api.console.forms import Form, paged
from api.console.public_forms.making import known_fields, name_of, version_of
from api.console.records.comparisons import COMPARISONS, Comparison, leaf_of, read_leaf
from api.console.rendering import page, see_other
from api.console.routing import page_router
from api.console.shell import shell_of
from api.console.words import curl, queried
from api.console.workspace.settings import Notice
from api.kernel.routing import ApiRequest
from api.routers.data.forms import FORM, WRITE
from models.core.base import JsonObject
from models.data.fields.rules.fields import FieldSpecs
from models.data.forms import commands, queries
from models.data.forms.shapes import FormDetail, UpdateForm
from runtime.errors import ConflictError, NotFoundError, PlatformError, ValidationError

router = page_router()

_QUESTIONS = f"{FORM.removeprefix('/v1')}/questions"
_QUESTION = f"{_QUESTIONS}/{{key}}"
_SHOW = replace(paged(WRITE), idempotent=False)
_CHANGE = paged(replace(WRITE, joins=True))
_KEPT = "kept"
"""The choice that leaves a condition which no page can show."""


class Addition(Form):
    """The key of the field that the form is to ask for."""

    key: str = ""


class Step(Form):
    """The way a question goes."""

    to: Literal["up", "down"]


@router.post(_QUESTIONS, access=_CHANGE, errors=[ConflictError])
async def add_question(request: ApiRequest, body: Addition) -> Response:
    """Ask for one more field, at the end."""
    form = await _form(request)
    await _write(request, [*_listed(form), {"key": body.key}])
    return _done(request)


@router.get(_QUESTION, access=_SHOW)
async def get_question(request: ApiRequest) -> Response:
    """Look at how a form asks for a field, to change it."""
    return await _question_page(request, await _form(request), BLANK)


@router.post(_QUESTION, access=_CHANGE, errors=[ConflictError])
async def change_question(request: ApiRequest, body: Fields) -> Response:
    """Change the words of a question, and when it is asked."""
    form = await _form(request)
    listed = _listed(form)
    place = _place(request, listed)
    fields = await known_fields(request, form)

    async def change() -> FormDetail:
        texts = body.texts
        listed[place] = {
            "key": listed[place]["key"],
            "required": "required" in texts,
            "label": texts.get("label"),
            "help": texts.get("help"),
            "visibleIf": _condition(texts, listed[place], fields),
        }
        return await _write(request, listed, version_of(body))

    outcome = await attempt(request, change)
    if isinstance(outcome, PlatformError):
        return await _question_page(request, form, Entered(body.texts, _at_fields(outcome, place)))
    return _done(request)


@router.post(f"{_QUESTION}/move", access=_CHANGE, errors=[ConflictError])
async def move_question(request: ApiRequest, body: Step) -> Response:
    """Ask a question earlier or later."""
    listed = _listed(await _form(request))
    place = _place(request, listed)
    question = listed.pop(place)
    listed.insert(max(0, place - 1 if body.to == "up" else place + 1), question)
    await _write(request, listed)
    return _done(request)


@router.post(f"{_QUESTION}/remove", access=_CHANGE, errors=[ConflictError])
async def remove_question(request: ApiRequest) -> Response:
    """Ask for a field no longer; the answers that were given stay."""
    listed = _listed(await _form(request))
    del listed[_place(request, listed)]
    await _write(request, listed)
    return _done(request)


def _condition(
    texts: dict[str, str], question: JsonObject, fields: FieldSpecs
) -> JsonObject | None:
    """The filter that a form describes. Raises ValidationError."""
    key = texts.get("if", "")
    if not key:
        return None
    if key == _KEPT:
        kept: JsonObject | None = question.get("visibleIf")
        return kept
    if key not in fields:
        raise ValidationError.at("if", "There is no such question.")
    try:
        comparison = Comparison(texts.get("comparison", ""))
    except ValueError:
        raise ValidationError.at("comparison", "Choose how to compare.") from None
    return leaf_of(fields[key], comparison, texts.get("value"))


def _at_fields(refusal: PlatformError, place: int) -> PlatformError:
    """The same refusal, told at the fields of the page."""
    if not isinstance(refusal, ValidationError):
        return refusal
    start = f"fields.{place}."
    details = []
    for one in refusal.details:
        path = one.path.removeprefix(start)
        details.append(replace(one, path="if" if path.startswith("visibleIf") else path))
    return ValidationError(refusal.message, details)


async def _question_page(request: ApiRequest, form: FormDetail, entered: Entered) -> Response:
    listed = _listed(form)
    place = _place(request, listed)
    question = form.fields[place]
    fields = await known_fields(request, form)
    leaf = None if question.visible_if is None else read_leaf(question.visible_if)
    shell = await shell_of(request)
    earlier = [fields[entry["key"]] for entry in listed[:place] if entry["key"] in fields]
    path = f"/workspaces/{request.workspace_id}/forms/{form.id}"
    body = '{"fields": [{"key": "title", "required": true, "label": "Your name"}]}'
    return page(
        request,
        "question.html",
        shell,
        form=form,
        name=await name_of(request, form),
        question=question,
        spec=fields.get(question.key),
        at=path,
        entered=entered,
        earlier=[(spec.key, spec.label) for spec in earlier],
        condition=leaf or (_KEPT if question.visible_if else "", None, ""),
        comparisons=COMPARISONS,
        call=curl(shell.base, "PATCH", f"/v1{path}", body),
    )


async def _form(request: ApiRequest) -> FormDetail:
    return await queries.get_form(request.work, request.actor, request.ids["formId"])


def _listed(form: FormDetail) -> list[JsonObject]:
    """The questions as a body has them."""
    return [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in form.fields]


def _place(request: ApiRequest, listed: Sequence[JsonObject]) -> int:
    """The place of the question of the path. Raises NotFoundError."""
    keys = [one["key"] for one in listed]
    key: Any = request.path_params["key"]
    if key not in keys:
        raise NotFoundError("question")
    return keys.index(key)


async def _write(
    request: ApiRequest, listed: Sequence[JsonObject], version: int | None = None
) -> FormDetail:
    change = read_as(UpdateForm, {"fields": listed})
    form_id = request.ids["formId"]
    return await commands.update_form(request.work, request.actor, form_id, change, version)


def _done(request: ApiRequest) -> Response:
    path = f"/workspaces/{request.workspace_id}/forms/{request.ids['formId']}"
    return see_other(queried(path, notice=Notice.SAVED))
