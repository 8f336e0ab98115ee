"""The fields that the pages of a record show."""

from collections.abc import Sequence

from api.kernel.routing import ApiRequest
from models.core.base import Id
from models.data.fields.queries import load_schema
from models.data.fields.rules.fields import FieldSpec


async def shown_fields(request: ApiRequest, database_id: Id) -> Sequence[FieldSpec]:
    """The fields of a database that hold values, in order."""
    schema = await load_schema(request.work, request.actor.workspace_id, database_id)
    return [spec for spec in schema.fields.values() if spec.kind != "button"]
