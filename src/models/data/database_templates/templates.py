"""Databases the platform ships as templates: listed, and created from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from pydantic import Field

from models.core.access.rules import Actor
from models.core.base import Id, Input, InputId, Label, Order, Shape
from models.core.keys import slug
from models.core.pagination import Listed
from models.data.databases.shapes import CreateDatabase, DatabaseDetail
from models.data.databases.store import create_database
from models.data.fields.rules.fields import FieldKind
from models.data.record_templates import CreateRecordTemplate, create_template
from models.data.views.rules.kinds import ViewKind
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id
from runtime.errors import NotFoundError
from runtime.package_data import read_yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """One shipped database; its fields, views and record templates are bodies of requests."""

    key: str
    label: str
    description: str
    icon: str
    category: str
    fields: Sequence[Mapping[str, Any]]
    views: Sequence[Mapping[str, Any]]
    record_templates: Sequence[Mapping[str, Any]] = ()

    @property
    def id(self) -> Id:
        """The id, the same in every installation."""
        return derived_id("database-template", self.key)


@cache
def shipped_templates() -> Sequence[Template]:
    """Every template, in the order they are shown."""
    return [
        Template(**one) for one in read_yaml("models.data.database_templates", "templates.yaml")
    ]


def find_template(name: str) -> Template | None:
    """The template of this key or id."""
    return next((one for one in shipped_templates() if name in {one.key, str(one.id)}), None)


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
    """A database template that the platform ships."""

    id: Id
    key: str
    label: str
    description: str
    icon: str
    category: str
    fields: list[TemplateField]
    views: list[TemplateView]
    record_templates: list[str]


class DatabaseTemplateList(Listed):
    templates: list[DatabaseTemplateShape]


def list_templates() -> list[DatabaseTemplateShape]:
    """Every template, in the order they are shown."""
    return [_shape(template) for template in shipped_templates()]


def _shape(template: Template) -> DatabaseTemplateShape:
    return DatabaseTemplateShape.model_validate(
        {
            "id": template.id,
            "key": template.key,
            "label": template.label,
            "description": template.description,
            "icon": template.icon,
            "category": template.category,
            "fields": [
                {
                    "key": field.get("key") or slug(field["label"], "field"),
                    "label": field["label"],
                    "kind": field["kind"],
                }
                for field in template.fields
            ],
            "views": [
                {"label": view["label"], "kind": view.get("kind", ViewKind.TABLE)}
                for view in template.views
            ],
            "record_templates": [one["label"] for one in template.record_templates],
        }
    )


async def create_from_template(
    work: UnitOfWork, actor: Actor, name: str, body: NewFromTemplate
) -> DatabaseDetail:
    """A new database with the fields, views and record templates of a shipped one.

    Raises `NotFoundError` for the template and the parent, `DeniedError` for the parent.
    """
    template = find_template(name)
    if template is None:
        raise NotFoundError("database template")
    described = {
        "label": body.label or template.label,
        "description": template.description,
        "icon": template.icon,
        "parentItemId": body.parent_item_id,
        "order": body.order,
        "fields": template.fields,
        "views": template.views,
    }
    made = await create_database(work, actor, CreateDatabase.model_validate(described))
    for one in template.record_templates:
        described_record = CreateRecordTemplate.model_validate(one)
        await create_template(work, actor, made.id, described_record)
    return made
