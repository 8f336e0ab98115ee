"""Database templates on the wire (decisions C15, C16)."""

from typing import Annotated

from pydantic import Field

from models.core.base import Id, Input, InputId, Label, Nullable, Order, Shape
from models.data.fields.rules.kinds import FieldKind
from models.data.views.rules.kinds import ViewKind

TemplateName = Annotated[str, Field(min_length=1, max_length=100)]


class NewFromTemplate(Input):
    """Place and label of a database made from a template; without `label`, the template's."""

    label: Label | None = None
    parent_item_id: InputId | None = None
    order: Order | None = None


class CreateFromTemplate(NewFromTemplate):
    """Body of create from template; `templateId` is the id or the key of a template."""

    template_id: TemplateName


class TemplateField(Shape):
    key: str
    label: str
    kind: FieldKind


class TemplateView(Shape):
    label: str
    kind: ViewKind


class DatabaseTemplateShape(Shape):
    """A database that is shipped ready to be filled."""

    id: Id
    key: str
    label: str
    description: str
    icon: str
    category: str
    fields: list[TemplateField]
    views: list[TemplateView]
    record_templates: list[str]


class DatabaseTemplateList(Shape):
    templates: list[DatabaseTemplateShape]
    cursor: Nullable[str]
