"""A public form as a page: asked, answered, thanked for, closed (interface, Form)."""

from collections.abc import Mapping, Sequence

from pydantic import ConfigDict
from starlette.responses import Response

from api.console.forms import Form
from api.console.records.entry import Entry, entry_of, is_typed, read_typed, retyped
from api.console.records.fields import outside_spec
from api.console.rendering import bare
from api.console.routing import page_router
from api.kernel.routing import Access, ApiRequest
from models.data.fields.rules.fields import FieldSpec
from models.data.forms import commands, queries
from models.data.forms.shapes import PublicForm, SubmitForm
from runtime.errors import ValidationError
from runtime.ids import parse_id

router = page_router()

FORM = "/forms/{itemId}"
_ANYBODY = Access(credential="none", page=True)


class Answers(Form):
    """The answers as texts, by the names of their inputs."""

    model_config = ConfigDict(extra="allow")

    def texts(self) -> Mapping[str, object]:
        return self.model_extra or {}


@router.get(FORM, access=_ANYBODY)
async def get_form(request: ApiRequest) -> Response:
    """Ask the questions of a form, or say that it is closed."""
    form = await queries.public_form(request.work, parse_id(request.path_params["itemId"]))
    return _questions(form, [entry_of(spec, None) for spec in _specs(form)])


@router.post(FORM, access=_ANYBODY)
async def answer_form(request: ApiRequest, body: Answers) -> Response:
    """Take the answers, and thank for them; what is wrong is told beside its question."""
    item_id = parse_id(request.path_params["itemId"])
    form = await queries.public_form(request.work, item_id)
    if not form.accepting:
        return _questions(form, [], 404)
    specs = _specs(form)
    typed = read_typed(specs, body.texts())
    problems = {detail.path: detail.message for detail in typed.problems}
    if not problems:
        data = {key: value for key, value in typed.data.items() if value not in (None, [])}
        try:
            async with request.work.savepoint():
                thanks = await commands.submit_form(request.work, item_id, SubmitForm(data=data))
        except ValidationError as refusal:
            problems = {detail.path: detail.message for detail in refusal.details}
        else:
            return bare("form_thanks.html", form=form, thanks=thanks)
    entries = [retyped(entry_of(spec, None), body.texts(), problems) for spec in specs]
    return _questions(form, entries, ValidationError.status)


def _questions(form: PublicForm, entries: Sequence[Entry], status: int = 200) -> Response:
    fields = {field.key: field for field in form.fields}
    return bare("form.html", status, form=form, entries=entries, fields=fields)


def _specs(form: PublicForm) -> Sequence[FieldSpec]:
    """The questions that a page can ask: the answers to others are ids."""
    specs = [outside_spec(field, required=field.required) for field in form.fields]
    return [spec for spec in specs if is_typed(spec)]
