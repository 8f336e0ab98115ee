"""Export and import of automations: one as a JSON document, all of them in a bundle.

The document holds the content of one version, without secrets or runs; credentials are hidden.
References keep their ids; who imports it maps them to ids of the new workspace.
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import sqlalchemy as sa
from pydantic import Field, JsonValue
from pydantic import ValidationError as ShapeError

from models.automation.automations import graphs, shapes, versions
from models.automation.automations.commands import create_automation, sealed_webhook_secret
from models.automation.automations.queries import summary
from models.automation.automations.rules.graph.compiler import referenced_ids
from models.automation.automations.rules.graph.shapes import Graph
from models.automation.automations.rules.language.bindings import written
from models.automation.automations.rules.triggers.configs import parse_trigger_config
from models.automation.automations.tables import automation, automation_graph, automation_version
from models.content.items.joins import ITEM, live_item_of, live_items
from models.content.items.queries import closed_items
from models.core.access.rules import Actor
from models.core.base import Id, Input, InputId, JsonObject, Label, Moment, Shape
from models.core.bundles import USER, BundleKind, ImportTarget, Row, Stage
from models.core.http_requests import hidden
from models.core.problems import problems_within, read_part, sentence
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, ValidationError

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
    trigger_config: shapes.TriggerConfigJson
    graph: shapes.GraphJson
    references: list[NamedThing]


class ImportedDocument(Input):
    """A document as it is imported; `references` is not used."""

    format: Literal["workspace-automation"]
    format_version: Literal[1]
    exported_at: str | None = None
    label: Label
    key: str | None = None
    trigger_config: shapes.TriggerConfigJson
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
        raise ConflictError("The automation has no version to export yet.")
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
) -> shapes.AutomationDetail:
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
    with problems_within("document"):
        return await create_automation(
            work, actor, keys, read_part(shapes.CreateAutomation, values, "")
        )


def mapped(value: JsonValue, mapping: Mapping[str, str]) -> JsonValue:
    """A JSON value with every string that is an old id replaced by the new id."""
    if isinstance(value, str):
        return mapping.get(value.lower(), value)
    if isinstance(value, list):
        return [mapped(one, mapping) for one in value]
    if isinstance(value, dict):
        return {key: mapped(one, mapping) for key, one in value.items()}
    return value


async def _named(work: UnitOfWork, actor: Actor, content: versions.Content) -> list[NamedThing]:
    ids = sorted(referenced_ids(content.graph, content.trigger_config))
    rows = await work.rows(
        live_items(actor.workspace_id, ITEM.id, ITEM.target_id, ITEM.kind, ITEM.title)
        .where(
            ITEM.id.not_in(sa.select(closed_items(actor).c.id)),
            sa.or_(ITEM.target_id.in_(ids), ITEM.id.in_(ids)),
        )
        .order_by(ITEM.id)
    )
    return [
        NamedThing(id=row.id if row.id in ids else row.target_id, kind=row.kind, label=row.title)
        for row in rows
    ]


_BUNDLE_FILE = "automations.ndjson"

_WEBHOOK = "is a secret of the source's webhook"
_SCHEDULE = "follows from the schedule"
_WRITER = "is who wrote the draft in the source"


def _automations(workspace_id: Id) -> sa.Select[Any]:
    return (
        sa.select(automation)
        .join(*live_item_of(automation))
        .where(automation.c.workspace_id == workspace_id)
    )


def _versions(workspace_id: Id) -> sa.Select[Any]:
    """Versions with what they do."""
    version = automation_version.c
    return sa.select(
        *(one for one in version if one.name != "checksum"),
        automation_graph.c.trigger_config,
        automation_graph.c.graph,
    ).where(
        version.workspace_id == workspace_id,
        automation_graph.c.automation_id == version.automation_id,
        automation_graph.c.checksum == version.checksum,
        version.automation_id.in_(_automations(workspace_id).with_only_columns(automation.c.id)),
    )


async def _with_webhook(
    _work: UnitOfWork, target: ImportTarget, rows: Sequence[Row]
) -> Sequence[Row]:
    """The rows, each with a webhook of its own."""
    return [
        {
            **row,
            "webhook_token": secrets.token_hex(16),
            "sealed_webhook_secret": _bytea(sealed_webhook_secret(target.keys, Id(row["id"]))),
        }
        for row in rows
    ]


def _bytea(value: bytes) -> str:
    return f"\\x{value.hex()}"


def _bundle_problem(row: Row) -> str | None:
    if row["status"] not in set(shapes.VersionStatus):
        return "the status of a version is none"
    try:
        Graph.model_validate(row["graph"])
        parse_trigger_config(row["triggerConfig"])
    except ShapeError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return f"graph.{'.'.join(map(str, first['loc']))}: {sentence(first)}"
    except ValidationError as error:
        return error.message
    return None


def _redacted(row: Row) -> Row:
    return {**row, "graph": hidden(row["graph"], written)}


async def _with_graph(work: UnitOfWork, target: ImportTarget, rows: Sequence[Row]) -> Sequence[Row]:
    """Store what versions do, which names what is in the target now."""
    stored_rows = []
    for row in rows:
        owner = Id(row["automation_id"])
        graph = Graph.model_validate(row["graph"])
        config = parse_trigger_config(row["trigger_config"])
        compilation = await graphs.compile_in(work, target.workspace_id, owner, config, graph)
        checksum = await graphs.store(work, target.workspace_id, owner, config, graph, compilation)
        stored_rows.append({**row, "checksum": checksum, "trigger": config["kind"]})
    return stored_rows


AUTOMATIONS = BundleKind(
    name="automation",
    stage=Stage.AUTOMATIONS,
    file=_BUNDLE_FILE,
    table=automation,
    rows=_automations,
    references={
        "item_id": "item",
        "draft_version_id": "automation_version",
        "published_version_id": "automation_version",
    },
    left_out={
        "webhook_token": _WEBHOOK,
        "sealed_webhook_secret": _WEBHOOK,
        "sealed_previous_webhook_secret": _WEBHOOK,
        "previous_webhook_secret_until": _WEBHOOK,
        "canary": "is an experiment of the platform, which stays behind",
        "rewrites": "counts renames on the platform, which stay behind",
        "next_run_at": _SCHEDULE,
        "skipped_fires": _SCHEDULE,
        "missed_fires": _SCHEDULE,
    },
    # The source is still active: nothing must be done twice.
    imported_as={"enabled": False},
    unique_key=True,
    prepare=_with_webhook,
)

VERSIONS = BundleKind(
    name="automation_version",
    stage=Stage.AUTOMATIONS,
    file=_BUNDLE_FILE,
    table=automation_version,
    rows=_versions,
    references={
        "automation_id": "automation",
        "created_by_user_id": USER,
        "restored_from_version_id": "automation_version",
    },
    left_out={"changed_by_user_id": _WRITER, "changed_at": _WRITER},
    contents=("trigger_config", "graph"),
    redact=_redacted,
    check=_bundle_problem,
    store=_with_graph,
)
