"""Writing a bundle from the rows of a conversion, and its report."""

import hashlib
import json
import mimetypes
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Self
from uuid import UUID

from models.core.base import JsonObject
from models.data.databases.rules import default_layout
from models.data.fields.rules.fields import FieldSpec
from models.workspace.bundles.archives import Digest
from models.workspace.bundles.rules import MANIFEST, ManifestWorkspace, home, manifest_text
from runtime.ids import new_id

_NOBODY = str(UUID(int=0))


_SPOOLED = 1 << 20
"""Bytes of a file that stay in memory."""


Block = tuple[str, JsonObject, Sequence["Block"]]
"""Kind, content and nested blocks."""


@dataclass(slots=True)
class _Waiting:
    file: IO[bytes]
    rows: int = 0


@dataclass(slots=True)
class Report:
    """Rows by kind, and omissions and changes with their counts."""

    rows: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)

    def lose(self, loss: str, times: int = 1) -> None:
        """Say that something has no equivalent."""
        if times:
            self.left_out[loss] += times

    def text(self) -> str:
        rows = [f"- {kind}: {count}" for kind, count in sorted(self.rows.items())]
        lost = [f"- {loss} ({times})" for loss, times in self.left_out.most_common()]
        return "\n".join(["# Converted", "", *rows, "", "# Not converted", "", *(lost or ["-"])])


class BundleFile:
    """A bundle of one workspace that is being made."""

    def __init__(self, path: Path, name: str, converter: str, report: Report) -> None:
        self._archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self._workspace = (new_id(), name[:200])
        self._converter = converter
        self._now = datetime.now(UTC)
        self._waiting: dict[str, _Waiting] = {}
        self._written: dict[str, Digest] = {}
        self._keys: Counter[str] = Counter()
        self._places: Counter[str | None] = Counter()
        self.report = report

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._finish()
        self._archive.close()

    def row(self, file: str, row_type: str, **values: object) -> None:
        """Add a row; `values` have the names of a bundle."""
        waiting = self._waiting.get(file)
        if waiting is None:
            spooled = tempfile.SpooledTemporaryFile(_SPOOLED)  # noqa: SIM115  # closed at the end
            waiting = self._waiting[file] = _Waiting(spooled)
        line = json.dumps({"type": row_type, **values}, ensure_ascii=False)
        waiting.file.write(line.encode() + b"\n")
        waiting.rows += 1
        self.report.rows[row_type] += 1

    def dated(self) -> JsonObject:
        """The time a row was made, where the source does not say."""
        moment = self._now.isoformat()
        return {"createdAt": moment, "updatedAt": moment}

    def item(
        self,
        kind: str,
        title: str,
        parent: str | None,
        target: str | None = None,
        own: str | None = None,
    ) -> str:
        """An item below another, behind its siblings; its id. Parents come first."""
        item_id = own or str(new_id())
        self.row(
            "items.ndjson",
            "item",
            id=item_id,
            parentItemId=parent,
            kind=kind,
            targetId=target,
            title=title[:200] or "Untitled",
            position=self._places[parent],
            **self.dated(),
        )
        self._places[parent] += 1
        return item_id

    def page(
        self, title: str, parent: str | None, blocks: Iterable[Block], own: str | None = None
    ) -> str:
        """A page with its blocks; the id of its item."""
        surface = str(new_id())
        item = self.item("page", title, parent, surface, own)
        self.surface(surface, "page", blocks, itemId=item)
        return item

    def surface(self, own: str, kind: str, blocks: Iterable[Block], **home_of: str) -> None:
        """A surface of an item, or of a record, and its blocks."""
        self.row("surfaces.ndjson", "surface", id=own, kind=kind, **home_of, **self.dated())
        self._blocks(own, None, blocks)

    def _blocks(self, surface: str, parent: str | None, blocks: Iterable[Block]) -> None:
        for place, (kind, content, nested) in enumerate(blocks):
            own = str(new_id())
            self.row(
                "blocks.waiting",
                "block",
                surfaceId=surface,
                id=own,
                parentBlockId=parent,
                kind=kind,
                position=place,
                content=content,
                **self.dated(),
            )
            self._blocks(surface, own, nested)

    def database(
        self, own: str, key: str, label: str, parent: str | None, item_id: str | None = None
    ) -> str:
        """A database with one view of all records; the id of its item."""
        item = self.item("database", label, parent, own, item_id)
        self.row(
            "databases.ndjson",
            "database",
            id=own,
            itemId=item,
            key=self.free_key(key),
            label=label[:200] or "Untitled",
            settings={},
            recordLayout=default_layout(),
            **self.dated(),
        )
        self.row(
            "views.waiting",
            "view",
            id=str(new_id()),
            databaseId=own,
            key="all",
            label="All",
            kind="table",
            placement="database",
            manifest={},
            scope="shared",
            locked=False,
            definitionVersion=1,
            position=0,
            **self.dated(),
        )
        return item

    def field(self, database: str, spec: FieldSpec) -> None:
        """A field of a database, in the place its `position` says."""
        self.row(
            "fields.waiting",
            "field",
            id=str(spec.id),
            databaseId=database,
            key=spec.key,
            label=spec.label[:200],
            kind=spec.kind.value,
            required=False,
            options=[option.wire() for option in spec.options],
            settings=spec.settings,
            position=spec.position,
            **self.dated(),
        )

    def record(
        self, database: str, own: str, title: str, data: JsonObject, content: str | None = None
    ) -> None:
        """A record; `content` is the id of its surface."""
        self.row(
            f"records/{database}.ndjson",
            "record",
            id=own,
            databaseId=database,
            contentSurfaceId=content,
            title=title,
            data=data,
            archived=False,
            **self.dated(),
        )

    def link(self, field: UUID | str, record: str, target: str, place: int) -> None:
        self.row(
            "relations.ndjson",
            "record_link",
            recordId=record,
            fieldId=str(field),
            targetId=target,
            position=place,
            targetPosition=int(self._now.timestamp() * 1000),
        )

    def stored_file(self, name: str, content: bytes) -> str:
        """A file with its bytes; its id."""
        sha256 = hashlib.sha256(content).hexdigest()
        path = f"{self._home}blobs/{sha256}"
        if path not in self._written:
            self._write(path, content)
        own = str(new_id())
        self.row(
            "files.ndjson",
            "file",
            id=own,
            name=name,
            mimeType=mimetypes.guess_type(name)[0] or "application/octet-stream",
            byteSize=len(content),
            sha256=f"\\x{sha256}",
            createdByUserId=_NOBODY,
            createdAt=self._now.isoformat(),
        )
        return own

    def free_key(self, key: str) -> str:
        """The key, numbered where another database has it."""
        self._keys[key] += 1
        return key if self._keys[key] == 1 else f"{key[:57]}_{self._keys[key]}"

    @property
    def _home(self) -> str:
        return home(self._workspace[0])

    def _finish(self) -> None:
        own, name = self._workspace
        self._write(f"{self._home}workspace.json", json.dumps({"id": str(own), "name": name}))
        for behind, file in (
            ("fields", "databases"),
            ("views", "databases"),
            ("blocks", "surfaces"),
        ):
            self._append(f"{behind}.waiting", f"{file}.ndjson")
        rows = {}
        for path, waiting in self._waiting.items():
            waiting.file.seek(0)
            rows[self._home + path] = waiting.rows
            self._write(self._home + path, waiting.file)
            waiting.file.close()
        entry = ManifestWorkspace(id=own, name=name or "Imported", counts=dict(self.report.rows))
        text = manifest_text(entry, self._now, self._written, rows, self._converter)
        self._archive.writestr(MANIFEST, text)

    def _append(self, waiting: str, file: str) -> None:
        """Put rows behind all the rows that they need."""
        rows = self._waiting.pop(waiting, None)
        if rows is not None:
            rows.file.seek(0)
            onto = self._waiting[file]
            while piece := rows.file.read(_SPOOLED):
                onto.file.write(piece)
            onto.rows += rows.rows
            rows.file.close()

    def _write(self, path: str, content: str | bytes | IO[bytes]) -> None:
        digest, size = hashlib.sha256(), 0
        with self._archive.open(path, "w", force_zip64=True) as member:
            for piece in _pieces(content):
                digest.update(piece)
                size += len(piece)
                member.write(piece)
        self._written[path] = Digest(digest.hexdigest(), size)


def _pieces(content: str | bytes | IO[bytes]) -> Iterable[bytes]:
    if isinstance(content, str):
        yield content.encode()
    elif isinstance(content, bytes):
        yield content
    else:
        while piece := content.read(_SPOOLED):
            yield piece
