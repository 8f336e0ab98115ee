"""Fields on the wire (interface.md#field, interface.md#request-bodies)."""

from typing import Annotated, Any

from pydantic import Field

from models.core import base as core_base
from models.core.keys import Key
from models.data.fields.rules.fields import FieldKind

MAX_FIELDS = 500
MAX_OPTIONS = 1_000
MAX_OPTION_NAME = 100


class CreateOption(core_base.Input):
    """One option; its key is derived from the name unless given."""

    name: Annotated[str, Field(min_length=1, max_length=MAX_OPTION_NAME)]
    key: Key | None = None
    color: core_base.Color | None = None


class CreateField(core_base.Input):
    """A field inside a body. `defaultValue` is the text of a value, or the value itself."""

    label: core_base.Label
    kind: Annotated[FieldKind, Field(strict=False)]
    key: Key | None = None
    required: bool = False
    default_value: Any = None
    options: Annotated[list[CreateOption], Field(max_length=MAX_OPTIONS)] | None = None
    settings: core_base.JsonObject | None = None
    order: core_base.Order | None = None


class ChangeOption(core_base.Input):
    """One option of a changed list: an existing one by id or key, or a new one by name."""

    id: Annotated[str, Field(max_length=36)] | None = None
    name: Annotated[str, Field(min_length=1, max_length=MAX_OPTION_NAME)]
    key: Key | None = None
    color: core_base.Color | None = None
    order: core_base.Order | None = None


class UpdateField(core_base.Input):
    """Body of update field: what it names is replaced as a whole; a null default clears it.

    A key never changes: records, views, formulas and automations use it. A kind is changed by
    converting the field.
    """

    label: core_base.Label | None = None
    key: Key | None = None
    required: bool | None = None
    default_value: Any = None
    options: Annotated[list[ChangeOption], Field(max_length=MAX_OPTIONS)] | None = None
    settings: core_base.JsonObject | None = None
    order: core_base.Order | None = None


class OptionShape(core_base.Shape):
    id: str
    key: str
    name: str
    color: str
    order: float


class FieldShape(core_base.Shape):
    """One field; `defaultValue` is the text of the value a new record gets."""

    id: core_base.Id
    workspace_id: core_base.Id
    database_id: core_base.Id
    key: str
    label: str
    kind: FieldKind
    required: bool
    default_value: str | None
    options: list[OptionShape]
    settings: core_base.JsonObject
    order: float
    created_at: core_base.Moment
    updated_at: core_base.Moment
