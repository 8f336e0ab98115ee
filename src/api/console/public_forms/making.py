"""The page of a form for its editors: created, opened, closed, its responses and questions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from starlette.responses import Response

from api.console.entered import BLANK, Entered, Fields, Form, read_as, redisplays
from api.console.forms import paged
from api.console.records.entry import COMPARISONS, Comparison, leaf_of, read_leaf
from api.console.rendering import console_page, page, see_other, shell_of
from api.console.routing import page_router
from api.console.words import queried
from api.console.workspace.settings import Notice
from api.kernel.routing import ApiRequest, QueryId
from api.routers.data import databases as api
from api.routers.data.databases import CREATE, FORM, FORMS, READ, WRITE_FORMS
from models.content.items.queries import get_item
from models.core.access.rules import Scope
from models.core.base import JsonObject
from models.core.pagination import MAX_LIMIT
from models.data.databases.store import list_databases
from models.data.fields.queries import database_label, load_schema, seen_databases
from models.data.fields.rules.fields import FieldSpecs
from models.data.forms import commands, queries
from models.data.forms.rules import ASKABLE, questions, unmet
from models.data.forms.shapes import CreateFormBody, FormDetail, FormField, UpdateForm
from runtime.clock import wire_timestamp
from runtime.errors import ConflictError, NotFoundError, ValidationError

router = page_router()

_FORMS = FORMS.removeprefix("/v1")
_FORM = FORM.removeprefix("/v1")
_SHOW = replace(paged(WRITE_FORMS), idempotent=False)
_SHOWN_ANSWERS = 20
_TEXTS = ("title", "description", "submitLabel", "confirmation")


class NewForm(Form):
    """The name of a new form, and the database its answers go to."""

    label: str = ""
    database: str = ""


@router.get(f"{_FORMS}/new", access=replace(paged(CREATE), idempotent=False))
async def get_new_form(request: ApiRequest, database: QueryId | None = None) -> Response:
    """Choose the database that a new form fills."""
    chosen = "" if database is None else str(database)
    return await _new(request, Entered({"database": chosen}))


async def _new(request: ApiRequest, entered: Entered) -> Response:
    shown = request.page("databases", MAX_LIMIT, None)
    listed = await list_databases(request.work, request.actor, shown)
    body = {"label": "Feedback", "databaseId": "<database id>", "public": True}
    return await console_page(
        request,
        "new_form.html",
        (api.create_form, body),
        databases=[(str(one.id), one.label) for one in listed.databases],
        entered=entered,
    )


@router.post(_FORMS, access=paged(replace(CREATE, joins=True)), errors=[ConflictError])
@redisplays(_new)
async def create_form_by_hand(request: ApiRequest, body: NewForm) -> Response:
    """Create a form that asks for all it can ask for, and lead to it; it is not public."""
    values = {"label": body.label, "databaseId": body.database}
    content = read_as(CreateFormBody, values)
    outcome = await commands.create_form_item(request.work, request.actor, content)
    return see_other(f"/workspaces/{request.workspace_id}/forms/{outcome.id}")


@router.get(_FORM, access=paged(READ))
async def get_form_page(request: ApiRequest, notice: Notice | None = None) -> Response:
    """Look at a form: its address, whether it takes answers, its questions, its answers."""
    work, actor = request.work, request.actor
    form = await queries.get_form(work, actor, request.ids["formId"])
    fields = await known_fields(request, form)
    shell = await shell_of(request)
    keys = {question.key for question in form.fields}
    return page(
        request,
        "form_page.html",
        shell,
        form=form,
        name=await name_of(request, form),
        fields=fields,
        state=state_of(form, fields, work.now),
        unasked=[spec for spec in fields.values() if spec.kind in ASKABLE and spec.key not in keys],
        answers=await _answers(request, form),
        database=await database_label(work, actor.workspace_id, form.database_id)
        if fields
        else None,
        address=f"{shell.base}/forms/{form.item_id}",
        notice=notice,
        api=shell.calls(api.get_form, (api.update_form, {"public": True})),
    )


@router.get(f"{_FORM}/settings", access=_SHOW)
async def get_form_settings(request: ApiRequest) -> Response:
    """Look at what a form says, and when it takes answers, to change it."""
    return await _settings(request, BLANK)


async def _settings(request: ApiRequest, entered: Entered) -> Response:
    form = await queries.get_form(request.work, request.actor, request.ids["formId"])
    closes_at = "" if form.closes_at is None else wire_timestamp(form.closes_at)[:16]
    body = {"title": "Contact us", "accepting": True, "public": True}
    return await console_page(
        request,
        "form_settings.html",
        (api.update_form, body),
        form=form,
        name=await name_of(request, form),
        at=_path(request),
        entered=entered,
        closes_at=closes_at,
    )


@router.post(
    f"{_FORM}/settings", access=paged(replace(WRITE_FORMS, joins=True)), errors=[ConflictError]
)
@redisplays(_settings)
async def change_form_settings(request: ApiRequest, body: Fields) -> Response:
    """Change what a form says, and when it takes answers."""
    values = read_as(UpdateForm, _values(body))
    await commands.update_form(
        request.work, request.actor, request.ids["formId"], values, version_of(body)
    )
    return see_other(queried(_path(request), notice=Notice.SAVED))


async def _answers(request: ApiRequest, form: FormDetail) -> Sequence[queries.FormAnswer]:
    """The newest answers, for who may read records."""
    if Scope.RECORDS_READ not in request.actor.scopes:
        return []
    return await queries.latest_answers(request.work, request.actor, form.id, _SHOWN_ANSWERS)


async def known_fields(request: ApiRequest, form: FormDetail) -> FieldSpecs:
    """The fields of the database that a form fills, if the reader sees it."""
    work, actor = request.work, request.actor
    if await work.scalar(seen_databases(actor, [form.database_id])) is None:
        return {}
    return (await load_schema(work, actor.workspace_id, form.database_id)).fields


async def name_of(request: ApiRequest, form: FormDetail) -> str:
    """The title of a form, else that of its item."""
    if form.title:
        return form.title
    return (await get_item(request.work, request.actor.workspace_id, form.item_id)).title


def version_of(body: Fields) -> int | None:
    """The version of the form that the page knew."""
    text = body.texts.get("version", "")
    return int(text) if text.isdecimal() else None


def _values(body: Fields) -> dict[str, object]:
    texts = body.texts
    values: dict[str, object] = {name: texts.get(name) for name in _TEXTS}
    closes_at = texts.get("closesAt")
    values["closesAt"] = f"{closes_at}Z" if closes_at else None
    most = texts.get("maxSubmissions")
    values["maxSubmissions"] = int(most) if most is not None and most.isdecimal() else most
    return {**values, "public": "public" in texts, "accepting": "accepting" in texts}


def _path(request: ApiRequest) -> str:
    return f"/workspaces/{request.workspace_id}/forms/{request.ids['formId']}"


@dataclass(frozen=True, slots=True)
class FormState:
    """The state of a form towards its visitors: a word, and the reason."""

    open: bool
    word: str
    sentence: str


def state_of(form: FormDetail, fields: FieldSpecs, now: datetime) -> FormState:
    """The state of a form; `fields` has what the reader sees of its database."""
    if not form.public:
        return FormState(False, "private", "Not public yet")
    if not form.accepting:
        return FormState(False, "closed", "Not accepting responses")
    if form.closes_at is not None and form.closes_at <= now:
        return FormState(False, "closed", "Deadline passed")
    if form.max_submissions is not None and form.submission_count >= form.max_submissions:
        return FormState(False, "full", "Limit reached")
    told = [one.model_dump(by_alias=True, exclude_none=True) for one in form.fields]
    asked = questions(map(FormField.model_validate, told), fields, now)
    lacking = [fields[key].label for key in unmet(asked, fields)]
    if lacking:
        sentence = f"Required by the database but not always asked: {', '.join(lacking)}"
        return FormState(False, "closed", sentence)
    return FormState(True, "open", "Anyone with the link can respond")


_QUESTIONS = f"{FORM.removeprefix('/v1')}/questions"
_QUESTION = f"{_QUESTIONS}/{{key}}"

_CHANGE = paged(replace(WRITE_FORMS, joins=True))
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
    return await _question_page(request, BLANK)


async def _question_page(request: ApiRequest, entered: Entered) -> Response:
    form = await _form(request)
    listed = _listed(form)
    place = _place(request, listed)
    question = form.fields[place]
    fields = await known_fields(request, form)
    leaf = None if question.visible_if is None else read_leaf(question.visible_if)
    earlier = [fields[entry["key"]] for entry in listed[:place] if entry["key"] in fields]
    path = f"/workspaces/{request.workspace_id}/forms/{form.id}"
    body = {"fields": [{"key": "title", "required": True, "label": "Your name"}]}
    return await console_page(
        request,
        "question.html",
        (api.update_form, body),
        form=form,
        name=await name_of(request, form),
        question=question,
        spec=fields.get(question.key),
        at=path,
        entered=entered,
        earlier=[(spec.key, spec.label) for spec in earlier],
        condition=leaf or (_KEPT if question.visible_if else "", None, ""),
        comparisons=COMPARISONS,
    )


@router.post(_QUESTION, access=_CHANGE, errors=[ConflictError])
@redisplays(_question_page)
async def change_question(request: ApiRequest, body: Fields) -> Response:
    """Change the words of a question, and when it is asked."""
    form = await _form(request)
    listed = _listed(form)
    place = _place(request, listed)
    fields = await known_fields(request, form)
    try:
        texts = body.texts
        listed[place] = {
            "key": listed[place]["key"],
            "required": "required" in texts,
            "hidden": "hidden" in texts or None,
            "label": texts.get("label"),
            "help": texts.get("help"),
            "visibleIf": _condition(texts, listed[place], fields),
        }
        await _write(request, listed, version_of(body))
    except ValidationError as refusal:
        raise _at_fields(refusal, place) from None
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
        raise ValidationError.at("if", "Choose an earlier question.")
    try:
        comparison = Comparison(texts.get("comparison", ""))
    except ValueError:
        raise ValidationError.at("comparison", "Choose a comparison.") from None
    return leaf_of(fields[key], comparison, texts.get("value"))


def _at_fields(refusal: ValidationError, place: int) -> ValidationError:
    """The same refusal, told at the fields of the page."""
    start = f"fields.{place}."
    details = []
    for one in refusal.details:
        path = one.path.removeprefix(start)
        details.append(replace(one, path="if" if path.startswith("visibleIf") else path))
    return ValidationError(refusal.message, details)


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
