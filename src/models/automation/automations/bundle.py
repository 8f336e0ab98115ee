"""Automations with their versions in a bundle. They come in switched off."""

import secrets
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError as ShapeError
from sqlalchemy import Select, select

from models.automation.automations import graphs
from models.automation.automations.rules.graph.shapes import Graph
from models.automation.automations.rules.language.credentials import written
from models.automation.automations.rules.triggers.configs import parse_trigger_config
from models.automation.automations.shapes import VersionStatus
from models.automation.automations.tables import automation, automation_graph, automation_version
from models.automation.automations.webhook_secrets import sealed_webhook_secret
from models.content.items.joins import live_item_of
from models.core.base import Id
from models.core.bundles.kinds import BundleKind, ImportTarget, Row
from models.core.bundles.rules import USER, Stage
from models.core.credentials import hidden
from models.core.problems import sentence
from runtime.database import UnitOfWork
from runtime.errors import ValidationError

_FILE = "automations.ndjson"
_WEBHOOK = "is a secret of the source's webhook"
_SCHEDULE = "follows from the schedule"


def _automations(workspace_id: Id) -> Select[Any]:
    return (
        select(automation)
        .join(*live_item_of(automation))
        .where(automation.c.workspace_id == workspace_id)
    )


def _versions(workspace_id: Id) -> Select[Any]:
    """Versions with what they do."""
    version = automation_version.c
    return select(
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


def _problem(row: Row) -> str | None:
    if row["status"] not in set(VersionStatus):
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


def _shown(row: Row) -> Row:
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
    file=_FILE,
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
        "next_run_at": _SCHEDULE,
        "skipped_fires": _SCHEDULE,
        "missed_fires": _SCHEDULE,
    },
    # What the source still does must not be done twice.
    imported_as={"enabled": False},
    unique_key=True,
    prepare=_with_webhook,
)

VERSIONS = BundleKind(
    name="automation_version",
    stage=Stage.AUTOMATIONS,
    file=_FILE,
    table=automation_version,
    rows=_versions,
    references={
        "automation_id": "automation",
        "created_by_user_id": USER,
        "restored_from_version_id": "automation_version",
    },
    contents=("trigger_config", "graph"),
    redact=_shown,
    check=_problem,
    store=_with_graph,
)
