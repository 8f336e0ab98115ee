"""A public form as a page: asked, answered, thanked for, closed (interface.md#forms)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import ConfigDict
from starlette.responses import Response

from api.anonymous_requests import submitter_of
from api.console.entered import Form
from api.console.records import entry
from api.console.records.cells import outside_spec
from api.console.rendering import bare
from api.console.routing import refuse
from api.kernel.routing import Access, ApiRequest, Router
from models.data.fields.rules.fields import FieldKind, FieldSpec
from models.data.forms import commands, queries
from models.data.forms.shapes import PublicForm, SubmitForm
from runtime import errors
from runtime.ids import new_id, parse_id


def _refuse(request: ApiRequest, refusal: errors.PlatformError) -> Response:
    """The answer to a submission that was not taken, as who sent it reads it."""
    if isinstance(refusal, errors.ConflictingMutationError):
        answer = bare(request, "form_sent.html", refusal.status, path=request.url.path)
    elif isinstance(refusal, errors.RateLimitedError) and request.sent_form is not None:
        fields = json.loads(request.sent_form.body.raw or b"{}")
        keys = [key.decode() for key in request.sent_form.idempotency_keys]
        answer = bare(
            request, "form_busy.html", refusal.status, refusal=refusal, fields=fields, keys=keys
        )
        answer.headers.update(refusal.headers)
    else:
        return refuse(request, refusal)
    return answer


router = Router(tags=["console"], refuse=_refuse, documented=False)

FORM = "/forms/{itemId}"
_ANYBODY = Access(credential="none", page=True)


class Answers(Form):
    """The answers as texts, by the names of their inputs."""

    model_config = ConfigDict(extra="allow")

    def texts(self) -> Mapping[str, object]:
        return self.model_extra or {}


@router.get(FORM, access=_ANYBODY)
async def get_form(request: ApiRequest, query: Answers) -> Response:
    """Ask the questions of a form, with the answers of its address, or say that it is closed."""
    form = await queries.public_form(request.work, parse_id(request.path_params["itemId"]))
    specs = _specs(form)
    texts = _texts_of_address(specs, query.texts())
    answer = _questions(
        request, form, [entry.retyped(entry.entry_of(spec, None), texts, {}) for spec in specs]
    )
    # Going back from the thanks shows the same page, with the same key.
    answer.headers["Cache-Control"] = "private, no-cache"
    return answer


@router.post(FORM, access=replace(_ANYBODY, idempotent=True))
async def answer_form(request: ApiRequest, body: Answers) -> Response:
    """Take the answers, and thank for them; what is wrong is told beside its question.

    The page is sent again under its key, by a double click, by going back or by reloading the
    thanks: it makes one record.
    """
    item_id = parse_id(request.path_params["itemId"])
    submitter = submitter_of(request, item_id)
    form = await queries.public_form(request.work, item_id)
    if not form.accepting:
        return _questions(request, form, [], 404)
    specs = _specs(form)
    typed = entry.read_typed(specs, body.texts())
    hidden = {field.key: field.label for field in form.fields if field.hidden}
    problems = {one.path: one.message for one in typed.problems if one.path not in hidden.values()}
    data = {key: value for key, value in typed.data.items() if value not in (None, [])}
    while not problems:
        try:
            async with request.work.savepoint():
                sent = SubmitForm(data=data)
                thanks = await commands.submit_form(request.work, item_id, sent, submitter)
        except errors.ValidationError as refusal:
            problems = {detail.path: detail.message for detail in refusal.details}
            # Visitors can't correct what an address says wrongly, and are not asked for it.
            wrong = {key for key in hidden if key in data and f"data.{key}" in problems}
            if wrong and len(wrong) == len(problems):
                data = {key: value for key, value in data.items() if key not in wrong}
                problems = {}
        else:
            return bare(request, "form_thanks.html", form=form, thanks=thanks)
    entries = [entry.retyped(entry.entry_of(spec, None), body.texts(), problems) for spec in specs]
    return _questions(request, form, entries, errors.ValidationError.status)


def _questions(
    request: ApiRequest, form: PublicForm, entries: Sequence[entry.Entry], status: int = 200
) -> Response:
    fields = {field.key: field for field in form.fields}
    return bare(
        request, "form.html", status, form=form, entries=entries, fields=fields, key=new_id()
    )


def _texts_of_address(specs: Sequence[FieldSpec], texts: Mapping[str, object]) -> dict[str, str]:
    """The fields of a form as its address fills them (`?key=text`); other names are ignored."""
    fields: dict[str, str] = {}
    for spec in specs:
        if text := str(texts.get(spec.key, "")).strip():
            fields |= _fields_of(spec, text)
    return fields


def _fields_of(spec: FieldSpec, text: str) -> Mapping[str, str]:
    """The fields of one question; an option may be named by its key or its name."""
    name = f"{entry.PREFIX}{spec.key}"
    keys = {word.lower(): one.key for one in spec.options for word in (one.name, one.key)}
    if spec.kind is FieldKind.MULTI_SELECT:
        chosen = [keys.get(word.strip().lower()) for word in text.split(",")]
        return {f"{name}.{key}": "on" for key in chosen if key is not None}
    if spec.kind is FieldKind.CHECKBOX:
        ticked = entry.typed_value(spec, text)
        return {name: "yes" if ticked else "no"} if isinstance(ticked, bool) else {}
    return {name: keys.get(text.lower(), text)}


def _specs(form: PublicForm) -> Sequence[FieldSpec]:
    """The questions that a page can ask: the answers to others are ids."""
    specs = [outside_spec(field, required=field.required) for field in form.fields]
    return [spec for spec in specs if entry.is_typed(spec)]
