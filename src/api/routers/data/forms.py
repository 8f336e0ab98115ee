"""Forms: change and publish them, and answer them without a credential."""

from dataclasses import replace

from api.anonymous_requests import submitter_of
from api.kernel.limits import TooOftenError
from api.kernel.routing import Access, ApiRequest, Data, Router
from models.core.access.rules import Level, Scope
from models.data.forms import commands, queries, shapes
from runtime.errors import ConflictError
from runtime.ids import parse_id

router = Router(tags=["forms"])

FORMS = "/v1/workspaces/{workspaceId}/forms"
FORM = f"{FORMS}/{{formId}}"
PUBLIC_FORM = "/v1/forms/{itemId}"

CREATE = Access(scopes=[Scope.VIEWS_WRITE], level=Level.EDIT, idempotent=True)
READ = Access(scopes=[Scope.VIEWS_READ], resource="form", level=Level.VIEW)
WRITE = replace(CREATE, resource="form")
ANYBODY = Access(credential="none")


@router.post(
    FORMS, access=CREATE, status_code=201, errors=[ConflictError], calls=commands.create_form_item
)
async def create_form() -> None:
    """Create a form and its item.

    It also needs edit access to the database its responses are saved to. Without `fields` it
    includes all fields that a form can ask for. `POST /v1/items` with the kind `form` does the
    same.
    """


@router.get(FORM, access=replace(READ, cookie=True), calls=queries.get_form)
async def get_form() -> None:
    """Get a form; its id is the target of its item."""


@router.patch(FORM, access=WRITE, errors=[ConflictError], calls=commands.update_form)
async def update_form() -> None:
    """Change a form, or make it public.

    It also needs edit access to the database its responses are saved to. With the header
    `If-Match: <version>` a form that was changed since is left unchanged.
    """


@router.get(PUBLIC_FORM, access=ANYBODY)
async def get_public_form(request: ApiRequest) -> Data[shapes.PublicForm]:
    """Get the questions of a public form; `accepting` says whether it accepts responses now."""
    return Data(await queries.public_form(request.work, parse_id(request.path_params["itemId"])))


@router.post(
    f"{PUBLIC_FORM}/submissions",
    access=replace(ANYBODY, idempotent=True),
    status_code=201,
    errors=[TooOftenError],
)
async def submit_form(request: ApiRequest, body: shapes.SubmitForm) -> Data[shapes.SubmittedForm]:
    """Submit a response to a public form.

    Submissions that are sent again with the same `Idempotency-Key` make one record and get the same
    answer for 24 hours. They are limited by form and by address, over all processes.
    """
    item_id = parse_id(request.path_params["itemId"])
    submitter = submitter_of(request, item_id)
    return Data(await commands.submit_form(request.work, item_id, body, submitter))
