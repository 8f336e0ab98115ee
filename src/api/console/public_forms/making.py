"""The page of a form for its makers: made, opened, closed, with what was answered."""

from collections.abc import Sequence
from dataclasses import replace

from starlette.responses import Response

from api.console.entered import BLANK, Entered, Fields, attempt, read_as
from api.console.forms import Form, paged
from api.console.public_forms.states import state_of
from api.console.rendering import page, see_other
from api.console.routing import page_router
from api.console.shell import shell_of
from api.console.words import curl, queried
from api.console.workspace.settings import Notice
from api.kernel.routing import ApiRequest, QueryId
from api.routers.data.forms import CREATE, FORM, FORMS, READ, WRITE
from models.content.items.queries import get_item
from models.core.access.rules import Scope
from models.core.pagination import MAX_LIMIT
from models.data.databases.queries import list_databases
from models.data.fields.queries import database_label, load_schema, seen_databases
from models.data.fields.rules.fields import FieldSpecs
from models.data.forms import commands, queries
from models.data.forms.rules.questions import ASKABLE
from models.data.forms.shapes import CreateFormBody, FormDetail, UpdateForm
from runtime.errors import ConflictError, PlatformError
from runtime.timestamps import wire_timestamp

router = page_router()

_FORMS = FORMS.removeprefix("/v1")
_FORM = FORM.removeprefix("/v1")
_SHOW = replace(paged(WRITE), idempotent=False)
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


@router.post(_FORMS, access=paged(replace(CREATE, joins=True)), errors=[ConflictError])
async def create_form_by_hand(request: ApiRequest, body: NewForm) -> Response:
    """Create a form that asks for all it can ask for, and lead to it; it is not public."""

    async def create() -> FormDetail:
        values = {"label": body.label, "databaseId": body.database}
        content = read_as(CreateFormBody, values)
        return await commands.create_form_item(request.work, request.actor, content)

    outcome = await attempt(request, create)
    if isinstance(outcome, PlatformError):
        texts = {"label": body.label, "database": body.database}
        return await _new(request, Entered(texts, outcome))
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
        calls={
            "Read it": curl(shell.base, "GET", f"/v1{_path(request)}"),
            "Change it": curl(shell.base, "PATCH", f"/v1{_path(request)}", '{"public": true}'),
        },
    )


@router.get(f"{_FORM}/settings", access=_SHOW)
async def get_form_settings(request: ApiRequest) -> Response:
    """Look at what a form says, and when it takes answers, to change it."""
    return await _settings(request, BLANK)


@router.post(f"{_FORM}/settings", access=paged(replace(WRITE, joins=True)), errors=[ConflictError])
async def change_form_settings(request: ApiRequest, body: Fields) -> Response:
    """Change what a form says, and when it takes answers."""

    async def change() -> FormDetail:
        values = read_as(UpdateForm, _values(body))
        return await commands.update_form(
            request.work, request.actor, request.ids["formId"], values, version_of(body)
        )

    outcome = await attempt(request, change)
    if isinstance(outcome, PlatformError):
        return await _settings(request, Entered(body.texts, outcome))
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


async def _settings(request: ApiRequest, entered: Entered) -> Response:
    form = await queries.get_form(request.work, request.actor, request.ids["formId"])
    shell = await shell_of(request)
    closes_at = "" if form.closes_at is None else wire_timestamp(form.closes_at)[:16]
    body = '{"title": "Tell us", "accepting": true, "public": true}'
    return page(
        request,
        "form_settings.html",
        shell,
        form=form,
        name=await name_of(request, form),
        at=_path(request),
        entered=entered,
        closes_at=closes_at,
        call=curl(shell.base, "PATCH", f"/v1{_path(request)}", body),
    )


async def _new(request: ApiRequest, entered: Entered) -> Response:
    shown = request.page("databases", MAX_LIMIT, None)
    listed = await list_databases(request.work, request.actor, shown)
    shell = await shell_of(request)
    path = f"/v1/workspaces/{request.workspace_id}/forms"
    body = '{"label": "Ask", "databaseId": "that of a database", "public": true}'
    return page(
        request,
        "new_form.html",
        shell,
        databases=[(str(one.id), one.label) for one in listed.databases],
        entered=entered,
        call=curl(shell.base, "POST", path, body),
    )


def _path(request: ApiRequest) -> str:
    return f"/workspaces/{request.workspace_id}/forms/{request.ids['formId']}"
