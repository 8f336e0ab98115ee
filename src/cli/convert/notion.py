"""A Notion export of Markdown and CSV in a zip: pages, databases and the files beside them."""

import csv
import io
import re
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from cli.convert.bundle_file import Block, BundleFile
from cli.convert.markdown import blocks_of
from cli.convert.tables import Table, convert_table
from runtime.ids import new_id

_ID = re.compile(r"\s+[0-9a-f]{32}$")
_DATE = re.compile(
    r"(?P<day>[A-Z][a-z]+ [0-9]{1,2}, [0-9]{4})(?P<time> [0-9]{1,2}:[0-9]{2} [AP]M)?"
    r"(?: \(.*\))?"
)
_LONGEST = 1 << 30
"""Bytes of one file of an export."""
_WEB = ("http://", "https://")


@dataclass(slots=True)
class _Folder:
    """What stands in one directory; a page and the folder of its name belong together."""

    pages: dict[str, bytes] = field(default_factory=dict)
    tables: dict[str, bytes] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    folders: dict[str, "_Folder"] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The names of what becomes an item, in order."""
        known = {*self.pages, *self.tables, *self.folders}
        return sorted(known, key=lambda name: (_title(name).lower(), name))


def convert_export(source: Path, bundle: BundleFile) -> None:
    """Add everything that an export has. Raises `ValueError` when it is none."""
    root = _Folder()
    with zipfile.ZipFile(source) as archive:
        _sort(archive, root)
    if not (root.names or root.files):
        raise ValueError("There is no page and no table in it.")
    for what in ("comments", "permissions", "views, filters and sorts of databases", "history"):
        bundle.report.lose(f"{what}: an export of Notion has none")
    _Conversion(bundle).folder(root, None)


def _sort(archive: zipfile.ZipFile, root: _Folder) -> None:
    """Put the files of an archive into folders; a large export is zips inside a zip."""
    for info in archive.infolist():
        if info.is_dir() or info.file_size > _LONGEST:
            continue
        path = PurePosixPath(info.filename)
        if path.suffix == ".zip" and len(path.parts) == 1:
            with archive.open(info) as nested, zipfile.ZipFile(io.BytesIO(nested.read())) as inner:
                _sort(inner, root)
            continue
        folder = root
        for part in path.parts[:-1]:
            folder = folder.folders.setdefault(part, _Folder())
        content = archive.read(info)
        if path.suffix == ".md":
            folder.pages[path.stem] = content
        elif path.suffix == ".csv":
            folder.tables[path.stem] = content
        else:
            folder.files[path.name] = content


class _Conversion:
    def __init__(self, bundle: BundleFile) -> None:
        self._bundle = bundle

    def folder(self, folder: _Folder, parent: str | None) -> None:
        """Add what stands in a folder below an item."""
        for name in folder.names:
            inside = folder.folders.get(name, _Folder())
            if name.endswith("_all") and name.removesuffix("_all") in folder.tables:
                continue
            if name in folder.tables:
                self._table(name, folder, inside, parent)
            elif name in folder.pages:
                text = folder.pages[name].decode("utf-8", "replace")
                title, blocks = self._page(name, text, inside)
                self.folder(inside, self._bundle.page(title, parent, blocks))
            else:
                made = self._bundle.item("folder", _title(name), parent)
                self.folder(inside, made)
        for name, content in folder.files.items():
            stored = self._bundle.stored_file(name, content)
            self._bundle.item("file", name, parent, stored)

    def _page(self, name: str, text: str, inside: _Folder) -> tuple[str, list[Block]]:
        """Title and blocks of a page; images that stand beside it become stored files."""
        first, _, rest = text.lstrip("\ufeff").partition("\n")
        title = first.removeprefix("# ").strip() if first.startswith("# ") else _title(name)
        body = rest if first.startswith("# ") else text
        return title, list(self._blocks(blocks_of(body), inside))

    def _blocks(self, blocks: Iterable[Block], inside: _Folder) -> Iterator[Block]:
        for kind, content, nested in blocks:
            url = content.get("url")
            if kind != "image" or str(url).startswith(_WEB):
                yield kind, content, nested
                continue
            beside = inside.files.get(PurePosixPath(unquote(str(url))).name)
            if beside is None:
                self._bundle.report.lose("images that are not in the export")
                continue
            file_id = self._bundle.stored_file(PurePosixPath(unquote(str(url))).name, beside)
            yield kind, {"fileId": file_id, "caption": content["caption"]}, nested

    def _table(self, name: str, folder: _Folder, inside: _Folder, parent: str | None) -> None:
        """Add a table as a database; the page of a row is the content of its record."""
        # The file with all rows is the one whose name says so; the other is one view of them.
        content = folder.tables.get(f"{name}_all", folder.tables[name])
        rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig", "replace"))))
        headers = rows[0] if rows else ["Name"]
        cells = [
            [_cell(one) for one in [*row, *[""] * len(headers)][: len(headers)]] for row in rows[1:]
        ]
        pages = _by_title(inside)
        table = Table(_title(name), headers, cells, title=headers[0])

        def content_of(number: int, database: str, record: str) -> str | None:
            found = pages.pop((cells[number][0] or "").strip(), None)
            if found is None:
                return None
            text = _without_properties(inside.pages.pop(found), headers)
            _, blocks = self._page(found, text, inside.folders.get(found, _Folder()))
            if not blocks:
                return None
            surface = str(new_id())
            self._bundle.surface(surface, "record", blocks, databaseId=database, recordId=record)
            return surface

        made = convert_table(self._bundle, table, parent, content_of)
        self._bundle.report.lose(
            f"{_title(name)}: people, relations, formulas and rollups come in as text"
        )
        self.folder(inside, made.item)


def _by_title(folder: _Folder) -> dict[str, str]:
    """The pages of a folder by the titles they begin with."""
    titles: dict[str, str] = {}
    for name, content in folder.pages.items():
        first = content.decode("utf-8", "replace").lstrip("\ufeff").partition("\n")[0]
        titles.setdefault(first.removeprefix("# ").strip(), name)
    return titles


def _without_properties(content: bytes, headers: Iterable[str]) -> str:
    """The page of a row without the lines that say again what stands in its table."""
    lines = content.decode("utf-8", "replace").lstrip("\ufeff").split("\n")
    known = tuple(f"{header}:" for header in headers)
    place = 1
    while place < len(lines) and (not lines[place].strip() or lines[place].startswith(known)):
        place += 1
    return "\n".join([lines[0], *lines[place:]])


def _title(name: str) -> str:
    return _ID.sub("", name).removesuffix("_all") or name


def _cell(text: str) -> str | None:
    """A cell; a date is written year first, of a span its beginning."""
    plain = text.strip()
    found = _DATE.fullmatch(plain.partition(" → ")[0])
    if found is None:
        return plain or None
    try:
        day = _moment(found["day"], "%B %d, %Y")
        if not found["time"]:
            return day.date().isoformat()
        return _moment(found["day"] + found["time"], "%B %d, %Y %I:%M %p").isoformat()
    except ValueError:
        return plain


def _moment(text: str, layout: str) -> datetime:
    """An export says no time zone, unless in words: it is taken for UTC."""
    return datetime.strptime(text, layout).replace(tzinfo=UTC)
