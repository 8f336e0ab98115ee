"""Answers that an http_request saves as files of the workspace (`saveAs`)."""

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from activities.automation_runs.nodes.invocation import Outgoing
from models.automation.automation_runs.errors import NodeError
from models.automation.automations.rules.graph.configs import SaveAs
from models.content.files.commands import new_object_key, save_file
from models.content.files.queries import find_file
from models.content.files.rows import FileRow
from models.content.files.rules import Content, file_name, media_type
from models.content.items.commands import check_parent
from models.core.access.rules import Role, Scope
from models.core.base import Id, JsonObject
from models.people.members.queries import members_with
from runtime.content_types import extended_parameter, parameters_of
from runtime.database import Database, UnitOfWork
from runtime.derived_ids import derived_id
from runtime.errors import DeniedError, PlatformError
from runtime.file_digests import size_and_digest
from runtime.object_store import ObjectStore
from runtime.outbound.client import OutboundClient
from runtime.outbound.messages import MEBIBYTE, OutboundRequest, OutboundResponse
from runtime.redaction import Redaction

MAX_SAVED_BYTES = 100 * MEBIBYTE
"""Bytes of an answer that is saved; an upload may have as many."""
_CHUNK = 1024 * 1024


class SavedAnswers:
    """Saves answers, each once: the id of its file is that of its node in its run and scope."""

    def __init__(self, database: Database, store: ObjectStore) -> None:
        self._database = database
        self._store = store

    async def send(
        self, outbound: OutboundClient, request: OutboundRequest, path: Path
    ) -> OutboundResponse:
        """Send a request, of whose answer the body is written to a file. Raises OutboundError."""
        with await asyncio.to_thread(path.open, "wb") as file:

            async def keep(chunk: bytes) -> None:
                await asyncio.to_thread(file.write, chunk)

            return await outbound.send(request, keep)

    async def check(self, outgoing: Outgoing, place: SaveAs) -> None:
        """Refuse, before anything is sent, what may not be saved there.

        Raises DeniedError, NotFoundError and ValidationError.
        """
        if Scope.FILES_WRITE not in outgoing.actor.scopes:
            raise DeniedError("Saving an answer needs the scope files:write.")
        async with self._database.transaction() as work:
            await check_parent(work, outgoing.actor, place.parent_item_id)

    async def save(
        self, outgoing: Outgoing, place: SaveAs, answer: OutboundResponse, path: Path
    ) -> JsonObject:
        """`{fileId, name, mimeType, byteSize}` of the file, which an earlier attempt may have made.

        Raises what `check` raises, and NodeError for an answer that repeats a secret.
        """
        redaction = outgoing.redaction
        if redaction is not None and await asyncio.to_thread(_repeats, redaction, path):
            raise NodeError(
                "secret_repeated",
                "The answer repeats a secret that was sent, so it was not saved.",
            )
        size, digest = await asyncio.to_thread(size_and_digest, path)
        key = new_object_key(outgoing.workspace_id)
        content = Content(
            name=file_name(place.name or _named(answer)),
            mime_type=media_type(answer.headers.get("content-type")),
            byte_size=size,
            sha256=digest,
            object_key=key,
        )
        await self._store.put_file(key, path)
        try:
            is_new = await self._recorded(outgoing, place, content)
        except PlatformError:
            await self._store.delete(key)
            raise
        if is_new:
            return _described(outgoing, content)
        await self._store.delete(key)
        async with self._database.transaction() as work:
            earlier = await find_file(work, outgoing.workspace_id, _file_id(outgoing))
        return _described(outgoing, earlier or content)

    async def _recorded(self, outgoing: Outgoing, place: SaveAs, content: Content) -> bool:
        async with self._database.transaction() as work:
            return await save_file(
                work,
                outgoing.actor,
                content,
                file_id=_file_id(outgoing),
                user_id=await _maker(work, outgoing),
                parent_item_id=place.parent_item_id,
                placed="parent_item_id" in place.model_fields_set,
            )


def scratch() -> "tempfile.TemporaryDirectory[str]":
    """A directory for the body of one answer."""
    return tempfile.TemporaryDirectory(prefix="workspace-answer-")


def _file_id(outgoing: Outgoing) -> Id:
    return derived_id("answer", outgoing.key)


def _described(outgoing: Outgoing, file: Content | FileRow) -> JsonObject:
    return {
        "fileId": str(_file_id(outgoing)),
        "name": file.name,
        "mimeType": file.mime_type,
        "byteSize": file.byte_size,
    }


async def _maker(work: UnitOfWork, outgoing: Outgoing) -> Id:
    """The person who started the run, else an owner of the workspace."""
    principal = outgoing.actor.principal
    if principal.user_id != principal.id:
        return principal.user_id
    return (await members_with(work, outgoing.workspace_id, Role.OWNER))[0]


def _repeats(redaction: Redaction, path: Path) -> bool:
    with path.open("rb") as file:
        pieces: Iterator[bytes] = iter(lambda: file.read(_CHUNK), b"")
        return redaction.stands_in(pieces)


def _named(answer: OutboundResponse) -> str:
    """The name that the answer has, else the last part of its address."""
    _, given = parameters_of(answer.headers.get("content-disposition", ""))
    name = extended_parameter(given, "filename") or given.get("filename")
    return name or unquote(urlsplit(answer.final_url).path.rpartition("/")[2])
