"""Record templates on the wire (interface, List a database's record templates)."""

from typing import Annotated

from pydantic import Field

from models.core.base import Icon, Id, Input, JsonObject, Label, Moment, Nullable, Shape
from models.data.records.shapes import Relations, RelationsInput

MAX_TEMPLATES = 200

Description = Annotated[str, Field(max_length=4_000)]


class CreateRecordTemplate(Input):
    """Body of create record template; `data` and `relations` are as in a record.

    At most one template of a database is the default: the one that was said to be it last.
    """

    label: Label
    description: Description | None = None
    icon: Icon | None = None
    data: JsonObject | None = None
    relations: RelationsInput | None = None
    is_default: bool = False


class UpdateRecordTemplate(Input):
    """Body of update record template: `data` and `relations` replace what was there."""

    label: Label | None = None
    description: Description | None = None
    icon: Icon | None = None
    data: JsonObject | None = None
    relations: RelationsInput | None = None
    is_default: bool | None = None


class RecordTemplateShape(Shape):
    """A record template; its content is on the surface `contentSurfaceId`."""

    id: Id
    workspace_id: Id
    database_id: Id
    label: str
    description: str | None
    icon: str | None
    data: JsonObject
    relations: Relations
    content_surface_id: Id
    is_default: bool
    created_at: Moment
    updated_at: Moment


class RecordTemplateList(Shape):
    templates: list[RecordTemplateShape]
    cursor: Nullable[str]


class DeletedRecordTemplate(Shape):
    id: Id
