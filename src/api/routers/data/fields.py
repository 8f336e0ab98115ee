"""Fields of a database: add, change, convert and remove them."""

from api.kernel.routing import Access, ApiRequest, Data, IfUnchanged, Router
from models.core.access.rules import Level, Scope
from models.data.databases.commands import conversion, fields
from models.data.databases.shapes import ConversionPreview, ConvertedField, ConvertField
from models.data.fields.shapes import CreateField, FieldShape, UpdateField
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, InProgressError, UnsupportedError

router = Router(tags=["fields"])

FIELDS = "/v1/databases/{databaseId}/fields"
FIELD = f"{FIELDS}/{{fieldId}}"

SECONDS = 25
"""The time a request waits for a conversion."""

WRITE = Access(scopes=[Scope.DATABASES_WRITE], resource="field", level=Level.EDIT, idempotent=True)


@router.post(
    FIELDS,
    access=Access(
        scopes=[Scope.DATABASES_WRITE], resource="database", level=Level.EDIT, idempotent=True
    ),
    status_code=201,
    errors=[ConflictError],
)
async def create_field(request: ApiRequest, body: CreateField) -> Data[FieldShape]:
    """Create a field.

    A relation gets its other side in the database it points into, labelled by the setting
    `inverseLabel` or as this database.
    """
    database_id = request.ids["databaseId"]
    return Data(await fields.create_field(request.work, request.actor, database_id, body))


@router.patch(FIELD, access=WRITE, errors=[ConflictError])
async def update_field(
    request: ApiRequest, body: UpdateField, if_match: IfUnchanged = None
) -> Data[FieldShape]:
    """Update a field.

    Options and settings are replaced as a whole: an option named by its id or key stays itself,
    one that is left out is taken out of the records. Its key never changes, for records, views and
    formulas name the field by it; its kind is changed by converting it. With the header
    `If-Match: <updatedAt>` a field that was changed since is left as it is.
    """
    place = (request.ids["databaseId"], request.ids["fieldId"])
    return Data(await fields.update_field(request.work, request.actor, *place, body, if_match))


@router.delete(FIELD, access=WRITE, errors=[ConflictError])
async def delete_field(request: ApiRequest, if_match: IfUnchanged = None) -> Data[FieldShape]:
    """Delete a field, with its values and the other side of a relation.

    It is refused while formulas, rollups or lookups follow from the field.
    """
    place = (request.ids["databaseId"], request.ids["fieldId"])
    return Data(
        await fields.delete_field(request.work, request.actor, *place, request.new_id, if_match)
    )


@router.post(
    f"{FIELD}/convert",
    access=WRITE,
    errors=[ConflictError, InProgressError, UnsupportedError],
)
async def convert_field(
    request: ApiRequest, body: ConvertField
) -> Data[ConversionPreview | ConvertedField]:
    """Convert a field to another kind, or preview what that would lose.

    All values change at once when the conversion is done; until then, and when it fails, the field
    is as it was. A conversion that takes longer than 25 seconds answers `in_progress`: repeat the
    request with the same Idempotency-Key for its outcome.
    """
    place = (request.work, request.actor, request.ids["databaseId"], request.ids["fieldId"])
    if body.preview:
        return Data(await conversion.preview_conversion(*place, body))
    await conversion.accept_conversion(*place, request.new_id, body)

    async def poll(work: UnitOfWork, last: bool) -> ConvertedField | None:
        return await conversion.conversion_outcome(work, *place[1:], request.new_id, last=last)

    return request.deferred(poll, within=SECONDS)
