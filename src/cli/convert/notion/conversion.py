"""An export of Notion as a workspace: pages, databases and the files beside them."""

import re
from collections.abc import Sequence
from pathlib import Path

from cli.convert.bundle_file import Block, BundleFile
from cli.convert.notion import sheets as notion_sheets
from cli.convert.notion.pages import PageWriter, Place, Places
from cli.convert.tables import Converted, Side, Table, Times, add_relation, convert_table
from models.core.values import InvalidValueError
from models.data.fields.rules.fields import FieldKind
from models.sources.tabular.rules.formats import Conventions
from runtime.ids import new_id

_UNTIL = re.compile(r"\s*→\s*")
_MAY_BE_DAY = re.compile(r"[A-Z][a-z]{2}|[0-9]{1,2} [A-Z]|[0-9]{4}[-/]")
"""The beginnings of days as Notion writes them, where they mean one day alone."""
_ZONE = re.compile(r".*[0-9](?:\s*[AP]M)?(?P<zone>\s*\(.*\))")
_LOST = (
    "comments (not in the export)",
    "permissions (not in the export)",
    "views, filters and sorts of databases (not in the export)",
    "history (not in the export)",
    "column layouts (not in the export)",
)


def convert_export(source: Path, bundle: BundleFile, zone: str | None) -> None:
    """Add everything that an export has. Raises `ValueError` when it is none."""
    with notion_sheets.opened_export(source) as root:
        if not (root.names or root.files):
            raise ValueError("No pages or tables found.")
        for loss in _LOST:
            bundle.report.lose(loss)
        _Conversion(bundle, root, Times(bundle.report, zone)).write()


class _Conversion:
    def __init__(self, bundle: BundleFile, root: notion_sheets.Folder, times: Times) -> None:
        self._bundle = bundle
        self._times = times
        self._root = root
        self._items: dict[str, str] = {}
        """Id of the item by the path of a page."""
        self._sheets: dict[str, notion_sheets.Sheet] = {}
        """Table by its path."""
        self._of_rows: set[str] = set()
        """The paths of pages that are contents of records."""
        self._places = Places()
        self._pages = PageWriter(bundle, self._places)
        self._made: dict[str, Converted] = {}
        """The converted tables, by the ids of their databases."""

    def write(self) -> None:
        """Find everything first, for pages name what comes later; then write it."""
        self._places.add_files(self._root)
        self._find(self._root)
        sheets = list(self._sheets.values())
        notion_sheets.find_views(sheets)
        for sheet in sheets:
            if sheet.source is not None:
                loss = f"{sheet.label}: a view of {sheet.source.label}, which has its rows"
                self._bundle.report.lose(loss)
        self._place(sheets)
        relations = list(notion_sheets.relations_of(sheets))
        self._columns = {(relation.sheet.database, relation.place) for relation in relations}
        self._folder(self._root, None)
        self._relate(relations)

    def _find(self, folder: notion_sheets.Folder) -> None:
        for name, text in folder.tables.items():
            sheet = notion_sheets.read_sheet(name, text, folder.inside(name))
            self._sheets[f"{folder.path}{name}"] = sheet
            self._of_rows |= {f"{sheet.inside.path}{page}" for page in sheet.pages if page}
        for inside in folder.folders.values():
            self._find(inside)
        for name in folder.pages:
            if name not in folder.tables and f"{folder.path}{name}" not in self._of_rows:
                item = self._items[f"{folder.path}{name}"] = str(new_id())
                self._know(name, Place("item_link", {"itemId": item}, {"itemId": item}))

    def _know(self, name: str, place: Place) -> None:
        own = notion_sheets.id_of(name)
        if own is not None:
            self._places.of_ids.setdefault(own, place)

    def _place(self, sheets: Sequence[notion_sheets.Sheet]) -> None:
        """Say where tables and their rows are found."""
        for sheet in sheets:
            source = sheet.source or sheet
            shown = Place("database_view", {"databaseId": source.database}, {"itemId": source.item})
            self._know(sheet.name, shown)
            for page, record in zip(sheet.pages, sheet.records, strict=True):
                if page is not None:
                    mention = {"recordId": record}
                    self._know(page, Place("record_link", dict(mention), dict(mention)))

    def _folder(self, folder: notion_sheets.Folder, parent: str | None) -> None:
        """Add the contents of a folder below an item."""
        for name in folder.names:
            path, inside = f"{folder.path}{name}", folder.inside(name)
            if path in self._sheets:
                self._table(self._sheets[path], parent)
            elif path in self._items:
                text = folder.pages[name]
                blocks = self._page(text, folder.path)
                title = notion_sheets.heading(text, name)
                self._folder(inside, self._bundle.page(title, parent, blocks, self._items[path]))
            elif self._has_items(inside):
                # Contents below a record have no other place.
                self._folder(
                    inside, self._bundle.item("folder", notion_sheets.title_of(name), parent)
                )
        for name in folder.files:
            path = f"{folder.path}{name}"
            if path not in self._places.file_ids:
                stored = self._bundle.stored_file(name, folder.files[name]())
                self._bundle.item("file", name, parent, stored)

    def _has_items(self, folder: notion_sheets.Folder) -> bool:
        """True when anything in a folder becomes an item."""
        return (
            any(f"{folder.path}{name}" in self._items for name in folder.pages)
            or any(self._sheets[f"{folder.path}{name}"].source is None for name in folder.tables)
            or any(f"{folder.path}{name}" not in self._places.file_ids for name in folder.files)
            or any(self._has_items(inside) for inside in folder.folders.values())
        )

    def _page(self, text: str, folder: str) -> list[Block]:
        first, _, rest = text.lstrip().partition("\n")
        return self._pages.blocks(rest if first.startswith("# ") else text, folder)

    def _table(self, sheet: notion_sheets.Sheet, parent: str | None) -> None:
        """Add a table as a database; the page of a row is the content of its record."""
        report = self._bundle.report
        if sheet.source is not None:
            return

        def content_of(number: int, database: str, record: str) -> str | None:
            page = sheet.pages[number]
            if page is None:
                return None
            text = notion_sheets.without_properties(sheet.inside.pages[page], sheet.headers)
            blocks = self._pages.blocks(text, sheet.inside.path)
            if not blocks:
                return None
            surface = str(new_id())
            self._bundle.surface(surface, "record", blocks, databaseId=database, recordId=record)
            return surface

        converted = convert_table(self._bundle, self._as_table(sheet), parent, content_of)
        self._made[sheet.database] = converted
        report.lose(f"{sheet.label}: people, files, formulas and rollups become text")
        pages_below = sum(
            f"{sheet.inside.path}{name}" in self._items for name in sheet.inside.pages
        )
        report.lose(f"{sheet.label}: pages without a row become pages below it", pages_below)
        self._folder(sheet.inside, converted.item)

    def _as_table(self, sheet: notion_sheets.Sheet) -> Table:
        """A table whose cells are read, without the columns that are relations."""
        places = [
            place
            for place in range(len(sheet.headers))
            if (sheet.database, place) not in self._columns
        ]
        titles = [
            row[0].strip()
            or ("" if page is None else notion_sheets.heading(sheet.inside.pages[page], page))
            for row, page in zip(sheet.rows, sheet.pages, strict=True)
        ]
        rows = [
            [title, *(self._cell(sheet, row[place]) for place in places if place)]
            for title, row in zip(titles, sheet.rows, strict=True)
        ]
        ends = sum(_is_span(row[place]) for row in sheet.rows for place in places if place)
        self._bundle.report.lose(f"{sheet.label}: end dates of date ranges", ends)
        headers = [sheet.headers[place] for place in places]
        kinds = {
            header: kind
            for place, header in enumerate(headers)
            if place and (kind := _choices([row[place] or "" for row in rows])) is not None
        }
        return Table(
            sheet.label,
            headers,
            rows,
            kinds,
            title=headers[0],
            records=sheet.records,
            item=sheet.item,
            database=sheet.database,
        )

    def _cell(self, sheet: notion_sheets.Sheet, text: str) -> str | None:
        """A cell; a day is written year first, of a span its beginning."""
        plain = notion_sheets.without_places(text.strip())
        first, *until = _UNTIL.split(plain)
        if not _is_day(first):
            return plain or None
        day = first.removeprefix("@").strip()
        zone = _ZONE.fullmatch(until[-1]) if until and ":" in day and "(" not in day else None
        written = day if zone is None else day + zone["zone"]
        return self._times.plain(sheet.label, written) or plain

    def _relate(self, relations: Sequence[notion_sheets.Relation]) -> None:
        """Add relations; two columns that say the same from both sides are one."""
        remaining = list(relations)
        while remaining:
            own = remaining.pop(0)
            back = {(target, record) for record, target in own.pairs}
            inverse = next((column for column in remaining if _is_inverse(own, column, back)), None)
            if inverse is not None:
                remaining.remove(inverse)
            other_label = own.sheet.label if inverse is None else inverse.label
            sides = (
                Side(self._made[own.sheet.database], own.label),
                Side(self._made[own.target.database], other_label),
            )
            field = add_relation(self._bundle, *sides)
            self._link(own, field)
            self._bundle.report.lose(
                f"{own.sheet.label}: rows of {own.label} missing from the export", own.unknown
            )

    def _link(self, relation: notion_sheets.Relation, field: object) -> None:
        places: dict[str, int] = {}
        for record, target in relation.pairs:
            place = places[record] = places.get(record, -1) + 1
            self._bundle.link(str(field), record, target, place)


def _is_inverse(
    own: notion_sheets.Relation, other: notion_sheets.Relation, back: set[tuple[str, str]]
) -> bool:
    """True when a column says the same as another, from the other side."""
    return other.sheet is own.target and other.target is own.sheet and set(other.pairs) == back


def _choices(cells: Sequence[str]) -> FieldKind | None:
    """The kind of a column of choices; days are none, however often they come again."""
    filled = [cell for cell in cells if cell.strip()]
    return None if filled and all(map(_is_day, filled)) else notion_sheets.choices(filled)


def _is_span(text: str) -> bool:
    first, *until = _UNTIL.split(text)
    return bool(until) and _is_day(first)


def _is_day(text: str) -> bool:
    """True for a day or a moment as Notion writes it."""
    plain = text.strip().removeprefix("@")
    try:
        return bool(_MAY_BE_DAY.match(plain)) and Conventions().written(plain) is not None
    except InvalidValueError:
        return False
