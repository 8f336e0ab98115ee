"""Export and import of an automation as a JSON document.

A document holds the content of one version, without secrets or runs; credentials are hidden.
References keep their ids; who imports it maps them to ids of the new workspace.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, JsonValue
from sqlalchemy import or_, select

from models.automation.automations import versions
from models.automation.automations.commands import create_automation
from models.automation.automations.queries import summary
from models.automation.automations.rules.graph.compiler import referenced_ids
from models.automation.automations.rules.graph.shapes import Graph
from models.automation.automations.rules.language.credentials import written
from models.automation.automations.shapes import (
    AutomationDetail,
    CreateAutomation,
    GraphJson,
    TriggerConfigJson,
)
from models.automation.automations.versions import Content
from models.content.items.joins import ITEM, live_items
from models.content.items.queries import closed_items
from models.core.access.rules import Actor
from models.core.base import Id, Input, InputId, JsonObject, Label, Moment, Shape
from models.core.credentials import hidden
from models.core.inputs import read_part, within
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import ConflictError

FORMAT = "workspace-automation"


class NamedThing(Shape):
    """A thing that an id in the document refers to, with its label in the exporting workspace."""

    id: Id
    kind: str
    label: str


class AutomationDocument(Shape):
    """An automation as it is exported."""

    format: str = FORMAT
    format_version: int = 1
    exported_at: Moment
    label: str
    key: str
    trigger_config: TriggerConfigJson
    graph: GraphJson
    references: list[NamedThing]


class ImportedDocument(Input):
    """A document as it is imported; `references` is not used."""

    format: Literal["workspace-automation"]
    format_version: Literal[1]
    exported_at: str | None = None
    label: Label
    key: str | None = None
    trigger_config: TriggerConfigJson
    graph: Graph
    references: Annotated[list[JsonObject], Field(max_length=1_000, default_factory=list)]


class ImportAutomation(Input):
    """Body of import automation; `mapping` gives the new id for each old one."""

    document: ImportedDocument
    label: Label | None = None
    key: str | None = Field(default=None, pattern=r"^[a-z][a-z0-9_]{0,62}$")
    parent_item_id: InputId | None = None
    mapping: Annotated[dict[str, InputId], Field(max_length=1_000, default_factory=dict)]


async def export_automation(
    work: UnitOfWork, actor: Actor, automation_id: Id, version_id: Id | None
) -> AutomationDocument:
    """Export a version: without `version_id` the draft, or else the published version.

    Raises NotFoundError, ConflictError where there is no version yet, and ValidationError for a
    version of another automation.
    """
    row = await summary(work, actor, automation_id)
    version_id = version_id or row.version_id
    if version_id is None:
        raise ConflictError("The automation has no version yet, so there is nothing to export.")
    content = await versions.content_of(work, actor, automation_id, version_id)
    return AutomationDocument(
        exported_at=work.now,
        label=row.label,
        key=row.key,
        trigger_config=content.trigger_config,
        graph=hidden(content.graph.to_json(), written),
        references=await _named(work, actor, content),
    )


async def import_automation(
    work: UnitOfWork, actor: Actor, keys: KeyRing, body: ImportAutomation
) -> AutomationDetail:
    """Create a disabled automation whose draft has the content of the document.

    References that the workspace lacks become issues of the draft. Raises as `create_automation`.
    """
    document = body.document
    mapping = {old.lower(): str(new) for old, new in body.mapping.items()}
    values: JsonObject = {
        "label": body.label or document.label,
        "triggerConfig": mapped(document.trigger_config, mapping),
        "graph": mapped(document.graph.to_json(), mapping),
    }
    if body.parent_item_id is not None:
        values["parentItemId"] = str(body.parent_item_id)
    if body.key is not None:
        values["key"] = body.key
    with within("document"):
        return await create_automation(work, actor, keys, read_part(CreateAutomation, values, ""))


def mapped(value: JsonValue, mapping: Mapping[str, str]) -> JsonValue:
    """A JSON value with every string that is an old id replaced by the new id."""
    if isinstance(value, str):
        return mapping.get(value.lower(), value)
    if isinstance(value, list):
        return [mapped(one, mapping) for one in value]
    if isinstance(value, dict):
        return {key: mapped(one, mapping) for key, one in value.items()}
    return value


async def _named(work: UnitOfWork, actor: Actor, content: Content) -> list[NamedThing]:
    ids = sorted(referenced_ids(content.graph, content.trigger_config))
    rows = await work.rows(
        live_items(actor.workspace_id, ITEM.id, ITEM.target_id, ITEM.kind, ITEM.title)
        .where(
            ITEM.id.not_in(select(closed_items(actor).c.id)),
            or_(ITEM.target_id.in_(ids), ITEM.id.in_(ids)),
        )
        .order_by(ITEM.id)
    )
    return [
        NamedThing(id=row.id if row.id in ids else row.target_id, kind=row.kind, label=row.title)
        for row in rows
    ]
