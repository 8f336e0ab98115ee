"""An export of Notion as it lies there: its folders, its tables, and which rows name others."""

import io
import re
import tempfile
import unicodedata
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath

from activities.sources.readers.delimited import read_lines
from models.data.fields.rules.fields import FieldKind
from runtime.ids import new_id

_ID = re.compile(r"\s*([0-9a-f]{32})(?:_all)?$")
_SPOOLED = 1 << 24
"""Bytes of an archive inside another that stay in memory."""
_LONGEST = 1 << 30
"""Bytes of one file of an export."""
_OF_SYSTEMS = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})
_ALL = "_all"

Read = Callable[[], bytes]


@dataclass(slots=True)
class Folder:
    """The contents of one directory; `path` is its place below the root of the export."""

    path: str = ""
    pages: dict[str, str] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    files: dict[str, Read] = field(default_factory=dict)
    folders: dict[str, "Folder"] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The names of what becomes an item, in order."""
        items = {*self.pages, *self.tables, *self.folders}
        return sorted(items, key=lambda name: (title_of(name).lower(), name))

    def inside(self, name: str) -> "Folder":
        """The folder of a page or a table; an empty one when there is none."""
        return self.folders.get(name, Folder(f"{self.path}{name}/"))


def title_of(name: str) -> str:
    """The name of a file without the id that Notion puts behind it."""
    return _ID.sub("", name).strip() or name


def id_of(name: str) -> str | None:
    """The id that Notion puts behind the name of a file."""
    match = _ID.search(name)
    return None if match is None else match[1]


@contextmanager
def opened_export(source: Path) -> Iterator[Folder]:
    """The folders of an export; its files are read as long as the block runs."""
    root = Folder()
    with ExitStack() as stack:
        if source.is_dir():
            for path in sorted(path for path in source.rglob("*") if path.is_file()):
                _put(root, PurePosixPath(path.relative_to(source).as_posix()), path.read_bytes)
        else:
            _sort(stack.enter_context(zipfile.ZipFile(source)), root, stack)
        # The outermost folder is the export itself, of which a page may list the pages.
        root.files.pop("index.html", None)
        while len(root.folders) == 1 and not (root.pages or root.tables or root.files):
            (root,) = root.folders.values()
            root.files.pop("index.html", None)
        _settle(root, "")
        yield root


def _sort(archive: zipfile.ZipFile, root: Folder, stack: ExitStack) -> None:
    """Put the files of an archive into folders; a large export is zips inside a zip."""
    for info in archive.infolist():
        if info.is_dir() or info.file_size > _LONGEST:
            continue
        path = PurePosixPath(info.filename)
        if path.suffix == ".zip" and len(path.parts) == 1:
            spooled = stack.enter_context(tempfile.SpooledTemporaryFile(_SPOOLED))  # noqa: SIM115  # closed by the stack
            with archive.open(info) as nested:
                while piece := nested.read(_SPOOLED):
                    spooled.write(piece)
            _sort(stack.enter_context(zipfile.ZipFile(spooled)), root, stack)
        else:
            _put(root, path, partial(archive.read, info))


def _put(root: Folder, path: PurePosixPath, read: Read) -> None:
    parts = [unicodedata.normalize("NFC", part) for part in path.parts]
    name = parts[-1]
    if "__MACOSX" in parts or name in _OF_SYSTEMS or name.startswith("._"):
        return
    folder = root
    for part in parts[:-1]:
        folder = folder.folders.setdefault(part, Folder())
    stem, _, suffix = name.rpartition(".")
    if suffix == "md" and stem:
        folder.pages[stem] = _text(read())
    elif suffix == "csv" and stem:
        folder.tables[stem] = _text(read())
    else:
        folder.files[name] = read


def _text(content: bytes) -> str:
    return content.decode("utf-8-sig", "replace")


def _settle(folder: Folder, path: str) -> None:
    """Say where folders are, whose names may lack the ids that pages have."""
    folder.path = path
    for name in [table for table in folder.tables if table.endswith(_ALL)]:
        # The file with all rows is the one whose name says so; the other is one view of them.
        folder.tables[name.removesuffix(_ALL)] = folder.tables.pop(name)
    for name in list(folder.folders):
        known = {*folder.pages, *folder.tables}
        if name not in known:
            named = [table for table in known - folder.folders.keys() if title_of(table) == name]
            if len(named) == 1:
                folder.folders[named[0]] = folder.folders.pop(name)
                _settle(folder.folders[named[0]], f"{path}{name}/")
                continue
        _settle(folder.folders[name], f"{path}{name}/")


_NAMED = re.compile(
    r"(?P<title>.*?) \((?P<place>(?:[^()\s]|\([^()\s]*\))*(?P<id>[0-9a-f]{32})[^()\s/]*)\)(?:, |$)",
    re.DOTALL,
)
"""One page in the cell of a relation: its title and where it is."""

_HEX = re.compile(r"[0-9a-f]{32}")
_LONGEST_NAMES = 50_000
_LONGEST_CHOICE = 50
_MOST_CHOICES = 40

_LONGEST_CELL = 1 << 30


@dataclass(slots=True)
class Sheet:
    """A table; `pages` has the name of the page of each row that has one."""

    name: str
    inside: Folder
    headers: list[str]
    rows: list[list[str]]
    item: str = field(default_factory=lambda: str(new_id()))
    database: str = field(default_factory=lambda: str(new_id()))
    records: list[str] = field(default_factory=list)
    pages: list[str | None] = field(default_factory=list)
    source: "Sheet | None" = None
    """The table that this one shows a part of."""

    @property
    def label(self) -> str:
        return title_of(self.name)


@dataclass(slots=True)
class Relation:
    """The meaning of a column of a table: pairs of a record and one that it names."""

    sheet: Sheet
    place: int
    target: Sheet
    pairs: list[tuple[str, str]]
    unknown: int

    @property
    def label(self) -> str:
        return self.sheet.headers[self.place]


def read_sheet(name: str, text: str, inside: Folder) -> Sheet:
    """A table with the pages of its rows."""
    rows = list(read_lines(io.StringIO(text, newline=""), longest=_LONGEST_CELL))
    headers = rows[0] if rows else ["Name"]
    width = len(headers)
    cells = [[*row, *[""] * width][:width] for row in rows[1:] if row]
    sheet = Sheet(name, inside, headers, cells)
    sheet.records = [str(new_id()) for _ in cells]
    sheet.pages = _matched(sheet)
    return sheet


def _matched(sheet: Sheet) -> list[str | None]:
    """The page of each row: by its title, of several the one that says the same as the row does."""
    stated = {name: properties(text, sheet.headers) for name, text in sheet.inside.pages.items()}
    titles: dict[str, list[str]] = {}
    for name, text in sheet.inside.pages.items():
        titles.setdefault(heading(text, name), []).append(name)
    pages: list[str | None] = [None] * len(sheet.rows)
    rows = [_cells(sheet.headers, row) for row in sheet.rows]
    for number, row in enumerate(sheet.rows):
        same = titles.get(row[0].strip())
        if same:
            own = rows[number].items()
            best = max(same, key=lambda name: len(own & stated[name].items()))
            same.remove(best)
            pages[number] = best
    # A title may be written otherwise, such as "Yesterday" for a day.
    unmatched = [name for names in titles.values() for name in names]
    for number, cells in enumerate(rows):
        if pages[number] is None and cells:
            equal = next((name for name in unmatched if stated[name] == cells), None)
            if equal is not None:
                unmatched.remove(equal)
                pages[number] = equal
    return pages


def heading(text: str, name: str) -> str:
    """The title of a page."""
    first = text.lstrip().partition("\n")[0]
    return first.removeprefix("#").strip() if first.startswith("#") else title_of(name)


def properties(text: str, headers: Sequence[str]) -> Mapping[str, str]:
    """The properties of its row that a page repeats, by header."""
    header_names = set(headers[1:])
    values = {}
    for line in _lines(text, headers):
        header, _, value = line.partition(":")
        if header in header_names:
            values[header] = _comparable(value)
    return {header: value for header, value in values.items() if value}


def without_properties(text: str, headers: Sequence[str]) -> str:
    """The page of a row without the lines that repeat the cells of its table."""
    skipped = len(list(_lines(text, headers)))
    body = text.lstrip().partition("\n")[2]
    return "\n".join(body.split("\n")[skipped:])


def _lines(text: str, headers: Sequence[str]) -> Iterator[str]:
    known = tuple(f"{header}:" for header in headers if header)
    for line in text.lstrip().partition("\n")[2].split("\n"):
        if line.strip() and not line.startswith(known):
            return
        yield line


def _cells(headers: Sequence[str], row: Sequence[str]) -> Mapping[str, str]:
    pairs = zip(headers[1:], row[1:], strict=True)
    return {header: value for header, cell in pairs if (value := _comparable(cell))}


def _comparable(cell: str) -> str:
    """A cell, in which pages are named by their ids: their relative paths differ on each page."""
    plain = cell.strip()
    return _NAMED.sub(r"\g<title> (\g<id>) ", plain).strip() if _may_name(plain) else plain


def without_places(cell: str) -> str:
    """A cell that names pages, with their titles alone."""
    return _NAMED.sub(r"\g<title>, ", cell).strip().removesuffix(",") if _may_name(cell) else cell


def _may_name(cell: str) -> bool:
    """True when a cell may name pages; a long cell is taken for text."""
    return len(cell) <= _LONGEST_NAMES and _HEX.search(cell) is not None


def find_views(sheets: Sequence[Sheet]) -> None:
    """Say which tables are views of others: of the same rows, without pages of their own."""
    for sheet in sheets:
        if not sheet.rows or any(sheet.pages):
            continue
        titles = {row[0].strip() for row in sheet.rows}
        for candidate in sheets:
            if (
                candidate is not sheet
                and any(candidate.pages)
                and set(sheet.headers) <= set(candidate.headers)
                and sheet.headers[0] == candidate.headers[0]
                and titles <= {row[0].strip() for row in candidate.rows}
            ):
                sheet.source = candidate
                break


def relations_of(sheets: Sequence[Sheet]) -> Iterator[Relation]:
    """The columns that name rows of tables, with whom they name."""
    rows_by_page = {
        own: (sheet, record)
        for sheet in sheets
        for page, record in zip(sheet.pages, sheet.records, strict=True)
        if page is not None and (own := id_of(page)) is not None
    }
    for sheet in sheets:
        if sheet.source is None:
            for place in range(1, len(sheet.headers)):
                relation = _relation(sheet, place, rows_by_page)
                if relation is not None:
                    yield relation


def _relation(
    sheet: Sheet, place: int, rows_by_page: Mapping[str, tuple[Sheet, str]]
) -> Relation | None:
    pairs, targets, unknown = [], set(), 0
    for row, record in zip(sheet.rows, sheet.records, strict=True):
        cell = row[place].strip()
        if not cell:
            continue
        matches = list(_NAMED.finditer(cell)) if _may_name(cell) else []
        if "".join(match[0] for match in matches) != cell:
            return None
        for match in matches:
            target = rows_by_page.get(match["id"])
            if target is None:
                unknown += 1
            else:
                targets.add(target[0].database)
                pairs.append((record, target[1], target[0]))
    if len(targets) != 1:
        return None
    plain = list(dict.fromkeys((record, target) for record, target, _ in pairs))
    return Relation(sheet, place, pairs[0][2], plain, unknown)


def choices(cells: Sequence[str]) -> FieldKind | None:
    """The kind of a column whose words come again and again; None for any other."""
    filled = [cell.strip() for cell in cells if cell.strip()]
    lists = [[word.strip() for word in cell.split(",")] for cell in filled]
    words = [word for cell_words in lists for word in cell_words]
    distinct = set(words)
    if (
        not words
        or len(distinct) > min(_MOST_CHOICES, len(words) // 2)
        or max(map(len, distinct)) > _LONGEST_CHOICE
        or not all(any(sign.isalpha() for sign in word) for word in distinct)
        or distinct <= {"Yes", "No"}
    ):
        return None
    many = any(len(cell_words) > 1 for cell_words in lists)
    return FieldKind.MULTI_SELECT if many else FieldKind.SELECT
