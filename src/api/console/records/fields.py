"""The fields that pages show."""

from collections.abc import Sequence

from api.kernel.routing import ApiRequest
from models.core.base import Id
from models.data.fields.queries import load_schema
from models.data.fields.rules.fields import FieldSpec, Option
from models.data.forms.shapes import PublicField, PublicOption
from models.workspace.share_links.shapes import SharedField, SharedOption
from runtime.ids import new_id


async def shown_fields(request: ApiRequest, database_id: Id) -> Sequence[FieldSpec]:
    """The fields of a database that hold values, in order."""
    schema = await load_schema(request.work, request.actor.workspace_id, database_id)
    return [spec for spec in schema.fields.values() if spec.kind != "button"]


def outside_spec(field: PublicField | SharedField, *, required: bool = False) -> FieldSpec:
    """A field as far as somebody without an account is told of it."""
    told: Sequence[PublicOption | SharedOption] = field.options
    options = [
        Option(id=one.key, key=one.key, name=one.name, color=one.color, order=place)
        for place, one in enumerate(told)
    ]
    return FieldSpec(
        id=new_id(),
        key=field.key,
        label=field.label,
        kind=field.kind,
        required=required,
        options=tuple(options),
    )
