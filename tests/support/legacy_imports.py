"""Legacy imports as an administrator drives them, over HTTP, with real workers in between."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import select, text

from models.people.users import make_platform_admin
from models.people.workspaces import workspace, workspace_member
from models.workspace.bundles.references import import_id_map
from tests.support.bundles import bundle, line
from tests.support.client import Client
from tests.support.patience import found_when
from tests.support.spaces import Space

Json = dict[str, Any]
MOVING = {
    "uploaded",
    "validating",
    "dry_running",
    "importing",
    "verifying",
    "cancelling",
    "rolling_back",
}
MOMENT = "2026-01-01T00:00:00.000Z"


@dataclass(frozen=True, slots=True)
class Administrator:
    """A platform administrator."""

    client: Client
    space: Space

    async def upload(self, content: bytes) -> Json:
        """Send a bundle; the run as it is accepted."""
        answer = await self.client.post(
            "/v1/admin/legacy-imports",
            content=content,
            headers={"Content-Type": "application/zip"},
        )
        assert answer.status_code == 201, answer.text
        return dict(answer.json()["data"])

    async def reviewed(self, content: bytes) -> Json:
        """Send a bundle and wait until a person has to act."""
        return await self.settled((await self.upload(content))["id"])

    async def imported(self, content: bytes) -> Json:
        """Send a bundle, approve it, start it, and wait for the end."""
        run = await self.reviewed(content)
        assert run["status"] == "awaiting_review", run
        await self.decide(run["id"], "approve")
        await self.decide(run["id"], "start")
        return await self.settled(run["id"])

    async def decide(self, run_id: str, what: str, status: int = 200, **body: Any) -> Json:
        """Call an operation of a run; its data, or the error."""
        answer = await self.client.post(f"/v1/admin/legacy-imports/{run_id}/{what}", json=body)
        assert answer.status_code == status, answer.text
        return dict(answer.json()["data"] if status == 200 else answer.json())

    async def get(self, run_id: str) -> Json:
        answer = await self.client.get(f"/v1/admin/legacy-imports/{run_id}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json()["data"])

    async def settled(self, run_id: str, moving: Collection[str] = frozenset(MOVING)) -> Json:
        """The run when it stands still."""
        return await found_when(
            partial(self.get, run_id), lambda run: run["status"] not in moving, "the end of the run"
        )

    async def change(self, run: Json, entry: int, status: int = 200, **body: Any) -> Json:
        """Update a workspace of a run."""
        entry_id = run["workspaces"][entry]["id"]
        answer = await self.client.patch(
            f"/v1/admin/legacy-imports/{run['id']}/workspaces/{entry_id}", json=body
        )
        assert answer.status_code == status, answer.text
        return dict(answer.json()["data"] if status == 200 else answer.json())


async def administrator(client: Client, space: Space) -> Administrator:
    """The owner of a workspace as a platform administrator."""
    async with space.database.transaction() as work:
        await make_platform_admin(work, space.user_id)
    return Administrator(client, space)


def folder(title: str, parent: str | None = None, **changed: Any) -> tuple[str, bytes]:
    """A folder in a bundle; its id and its line."""
    own = str(uuid4())
    values = {
        "id": own,
        "parentItemId": parent,
        "kind": "folder",
        "title": title,
        "position": 1.0,
        "archived": False,
        "accessMode": "open",
        "metadata": {},
        "createdAt": MOMENT,
        "updatedAt": MOMENT,
        **changed,
    }
    return own, line("item", **values)


def items_of(workspace_id: UUID | str, lines: Iterable[bytes]) -> Mapping[str, bytes]:
    """The file of items of a workspace."""
    return {f"workspaces/{workspace_id}/items.ndjson": b"".join(lines)}


def whole(workspaces: Mapping[str, Iterable[bytes]], **changed: Any) -> bytes:
    """A bundle of workspaces by their names, each with these items."""
    files: dict[str, bytes] = {}
    told = []
    for name, lines in workspaces.items():
        own = str(uuid4())
        rows = list(lines)
        files |= items_of(own, rows)
        told.append({"id": own, "name": name, "counts": {"item": len(rows)}})
    return bundle(files, **{"workspaces": told, **changed})


def folders(count: int) -> list[bytes]:
    """This number of folders, nested by fives."""
    found, parent = [], None
    for number in range(count):
        own, text = folder(f"Folder {number}", parent)
        found.append(text)
        parent = own if number % 5 < 4 else None
    return found


def told(run: Json) -> str:
    """A run, for who reads why a test failed."""
    return json.dumps(run, indent=1)


async def left_of(admin: Administrator, entry: dict[str, Any]) -> dict[str, int]:
    """Rows of a workspace, whichever table they are in, and of the map of its ids."""
    found = {}
    async with admin.space.database.reading() as work:
        tables = await work.rows(
            text(
                "SELECT table_name FROM information_schema.columns"
                " WHERE column_name = 'workspace_id' AND table_schema = 'public'"
            )
        )
        for row in tables:
            if row.table_name in {"outbox", "request_log"}:
                continue
            count = text(f"SELECT count(*) FROM {row.table_name} WHERE workspace_id = :id")  # noqa: S608
            number = await work.scalar(count, {"id": entry["targetWorkspaceId"]})
            if number:
                found[row.table_name] = number
        for table, own in (
            (workspace, workspace.c.id == UUID(entry["targetWorkspaceId"])),
            (import_id_map, import_id_map.c.entry_id == UUID(entry["id"])),
        ):
            if await work.rows(select(table).where(own).limit(1)):
                found[table.name] = 1
    return found


async def owners(admin: Administrator, entry: dict[str, Any]) -> list[UUID]:
    async with admin.space.database.reading() as work:
        rows = await work.rows(
            select(workspace_member.c.user_id).where(
                workspace_member.c.workspace_id == UUID(entry["targetWorkspaceId"])
            )
        )
    return [row.user_id for row in rows]
