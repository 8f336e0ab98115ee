"""Starters and plans on the wire (interface.md#starter-plans)."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from models.core.base import Id, Input, JsonObject, Shape, example
from models.core.openapi import documented_as
from models.core.pagination import Listed
from models.data.fields.rules.fields import FieldKind
from models.data.views.rules.kinds import ViewKind


class NodeType(StrEnum):
    FOLDER = "folder"
    DATABASE = "database"
    PAGE = "page"
    DASHBOARD = "dashboard"
    FORM = "form"


class PlanField(Shape):
    """One field of a database; `target` is the `ref` of the one a relation points into."""

    key: str
    label: str
    kind: FieldKind
    options: list[str] | None = None
    target: str | None = None


class PlanRecord(Shape):
    """One sample record; `data` has values by field key."""

    title: str
    data: JsonObject | None = None


class PlanView(Shape):
    """One view; `field` is the key of the field that it stacks or dates by."""

    label: str
    kind: ViewKind
    field: str | None = None


class PlanNode(Shape):
    """One thing to create.

    `parentRef` is the `ref` of its folder or page. Only a database has fields, views and records.
    `content` is the lines of a page, and `databaseRef` the database of a form.
    """

    type: NodeType
    ref: str
    label: str
    parent_ref: str | None = None
    icon: str | None = None
    description: str | None = None
    content: list[str] | None = None
    database_ref: str | None = None
    fields: list[PlanField] = Field(default_factory=list)
    views: list[PlanView] | None = None
    records: list[PlanRecord] = Field(default_factory=list)


class StarterPlan(Shape):
    """A plan of a new workspace: a headline, and what to create."""

    headline: str
    nodes: list[PlanNode]


MIN_DESCRIPTION, MAX_DESCRIPTION = 10, 4_000


class DraftWorkspace(Input):
    """Body of draft a workspace; `locale` (BCP 47) is the language of the plan.

    Default: detected from the description.
    """

    model_config = example(
        {"description": "A small bakery with regular customers, orders and suppliers."}
    )

    description: Annotated[str, Field(min_length=MIN_DESCRIPTION, max_length=MAX_DESCRIPTION)]
    locale: Annotated[str, Field(min_length=2, max_length=35)] | None = None


_PLAN: JsonObject = {
    "headline": "A workspace for your bakery",
    "nodes": [
        {
            "type": "database",
            "ref": "orders",
            "label": "Orders",
            "fields": [{"key": "due", "label": "Due", "kind": "date"}],
            "records": [{"title": "Wedding cake"}],
        },
        {"type": "page", "ref": "start", "label": "Start here"},
    ],
}


class LoosePlan(Shape):
    """A plan from another source: unknown parts are left out, parts over the limits are cut off."""

    model_config = ConfigDict(extra="allow")

    headline: Any = None
    nodes: list[Any]


class SeedDraft(Input):
    """Body of seed from a draft: the plan of a draft, changed or not.

    Invalid parts of the plan are fixed first.
    """

    model_config = example({"plan": _PLAN})

    plan: Annotated[JsonObject, documented_as("StarterPlan", "LoosePlan")]


class SeededDraft(Shape):
    """The result of a draft: the numbers of databases and of pages that were built."""

    headline: str
    database_count: int
    page_count: int


class SeedTemplate(Input):
    """Body of seed from a starter template, by its key."""

    model_config = example({"templateKey": "sales_crm"})

    template_key: Annotated[str, Field(min_length=1, max_length=100)]


class StarterCounts(Shape):
    """The amounts that a starter holds."""

    database_count: int
    record_count: int
    view_count: int
    page_count: int
    dashboard_count: int
    form_count: int
    automation_count: int


class SeededTemplate(StarterCounts):
    """The result of a starter. `itemIds` are the new items at the top of the workspace."""

    template_key: str
    headline: str
    item_ids: list[Id]


class StarterTemplateShape(StarterCounts):
    """A starter that is shipped."""

    key: str
    label: str
    headline: str
    description: str
    icon: str
    category: str
    databases: list[str]


class StarterTemplateList(Listed):
    templates: list[StarterTemplateShape]
