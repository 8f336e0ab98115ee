"""Tables of another product as databases, and the relations between them."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from cli.convert.bundle_file import BundleFile, Report
from models.core.keys import first_free, slug
from models.core.values import InvalidValueError
from models.data.fields.rules.fields import OPTION_KINDS, TITLE_KEY, FieldKind, FieldSpec, Option
from models.sources.tabular.rules.columns import inferred_columns, profiles
from models.sources.tabular.rules.conversion import MappedColumn, RowConversion
from models.sources.tabular.rules.formats import Conventions
from runtime.ids import new_id

_CONVENTIONS = Conventions()
_SAMPLED = 10_000
"""Rows from which the kinds of columns follow."""

Row = Sequence[str | None]


class Times:
    """The days and times of an export, and the notes on them.

    A time without a time zone is in `zone`; without that it is read as UTC, with a note.
    """

    def __init__(self, report: Report, zone: str | None) -> None:
        self._report = report
        self._zone = zone

    def plain(
        self,
        label: str,
        text: str,
        conventions: Conventions = _CONVENTIONS,
        zone: str | None = None,
    ) -> str | None:
        """A day or a moment of the table `label` by ISO 8601; None for another text.

        `zone` is what the table says of the times that have none beside them.
        """
        try:
            moment = conventions.written(text)
        except InvalidValueError:
            return None
        if moment is None:
            return None
        own = zone or self._zone
        try:
            plain = moment.plain(own or "UTC")
        except InvalidValueError:
            unknown = f"{label}: times with an unknown time zone, such as {moment.zone}"
            self._report.lose(unknown[:200])
            return None
        if own is None and moment.at is not None and moment.zone is None:
            told = "times without a time zone, read as UTC (set --timezone to change)"
            self._report.lose(f"{label}: {told}")
        return plain


@dataclass(frozen=True, slots=True)
class Table:
    """A table to convert; `kinds` names the fields of columns, by their headers.

    A column without a kind is looked at; one whose kind is None is left out. `options` are the
    choices of columns, by their headers, with the names of their colors. `records` are the ids of
    the records of its rows.
    """

    label: str
    headers: Sequence[str]
    rows: Sequence[Row]
    kinds: Mapping[str, FieldKind | None] | None = None
    title: str | None = None
    options: Mapping[str, Sequence[Option]] = field(default_factory=dict)
    records: Sequence[str] | None = None
    item: str | None = None
    database: str | None = None


@dataclass(frozen=True, slots=True)
class Converted:
    """A database that was made, and the records of its rows, in order; None for an empty row."""

    id: str
    item: str
    records: Sequence[str | None]
    titles: Mapping[str, str]
    """Id of the first record of each title."""
    twice: Collection[str]
    """The titles that several records have."""
    fields: int
    keys: set[str]
    """The keys of its fields; later fields are added."""


def convert_table(
    bundle: BundleFile,
    table: Table,
    parent: str | None,
    content_of: Callable[[int, str, str], str | None] = lambda *_: None,
) -> Converted:
    """Add a table as a database with its records.

    `content_of` takes the number of a row, the database and the record, and gives the id of the
    surface it made for the record, if it did.
    """
    database = table.database or str(new_id())
    key = slug(table.label, "database")
    item = bundle.database(database, key, table.label, parent, table.item)
    columns = _columns(table)
    conversion = RowConversion(columns, _CONVENTIONS)
    records: list[str | None] = []
    titles: dict[str, str] = {}
    twice: set[str] = set()
    for number, row in enumerate(table.rows):
        result = conversion.convert(row)
        bundle.report.lose(
            f"{table.label}: values that don't match their field", len(result.lost_columns)
        )
        own = str(new_id()) if table.records is None else table.records[number]
        content = content_of(number, database, own)
        if result.skipped and not result.title and content is None:
            records.append(None)
            continue
        bundle.record(database, own, result.title, result.data, content)
        if titles.setdefault(result.title, own) != own:
            twice.add(result.title)
        records.append(own)
    for spec in _grown(columns, conversion):
        bundle.field(database, spec)
    keys = {column.spec.key for column in columns}
    return Converted(database, item, records, titles, twice, len(columns) + 1, keys)


def _columns(table: Table) -> list[MappedColumn]:
    """The columns with their fields, the title's first."""
    kinds = table.kinds or {}
    suggested = inferred_columns(
        table.headers, profiles(table.headers, table.rows[:_SAMPLED], _CONVENTIONS)
    )
    title = _title_place(table, [column.suggested_key for column in suggested])
    keys = {TITLE_KEY}
    columns = []
    for place, column in enumerate(suggested):
        kind = kinds.get(column.label, column.kind)
        if place == title or kind is None:
            continue
        key = first_free(slug(column.label, "column"), keys)
        keys.add(key)
        spec = FieldSpec(
            id=new_id(),
            key=key,
            label=column.label or "Column",
            kind=kind,
            settings={"allowCreate": True} if kind in OPTION_KINDS else {},
            options=tuple(table.options.get(column.label, ())) if kind in OPTION_KINDS else (),
            position=place + 1,
        )
        columns.append(MappedColumn(place, spec))
    named = FieldSpec(id=new_id(), key=TITLE_KEY, label="Title", kind=FieldKind.TEXT)
    if title is not None:
        named = replace(named, label=table.headers[title] or "Title")
        return [MappedColumn(title, named), *columns]
    return columns


def _title_place(table: Table, keys: Sequence[str]) -> int | None:
    if table.title in table.headers:
        return list(table.headers).index(str(table.title))
    return keys.index(TITLE_KEY) if TITLE_KEY in keys else None


def _grown(columns: Sequence[MappedColumn], conversion: RowConversion) -> Iterator[FieldSpec]:
    """The fields, with the options that rows brought into being."""
    options = conversion.grown()
    specs = [
        replace(column.spec, options=(*column.spec.options, *options.get(column.spec.key, ())))
        for column in columns
    ]
    if not any(spec.title for spec in specs):
        yield FieldSpec(id=new_id(), key=TITLE_KEY, label="Title", kind=FieldKind.TEXT)
    yield from specs


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a relation: the field of this label shows it in this database."""

    database: Converted
    label: str


def add_relation(bundle: BundleFile, own: Side, inverse: Side) -> UUID:
    """Add the fields of both sides; the id of the first, whose records links begin at."""
    own_id, inverse_id = new_id(), new_id()
    for side, field_id, target, target_id in (
        (own, own_id, inverse, inverse_id),
        (inverse, inverse_id, own, own_id),
    ):
        keys = side.database.keys
        key = first_free(slug(side.label, "field"), keys | {"title"})
        keys.add(key)
        settings = {
            "databaseId": target.database.id,
            "cardinality": "many",
            "symmetric": False,
            "onDelete": "unlink",
            "inverseFieldId": str(target_id),
        }
        spec = FieldSpec(
            id=field_id,
            key=key,
            label=side.label,
            kind=FieldKind.RELATION,
            settings=settings,
            position=len(keys) + 1000,
        )
        bundle.field(side.database.id, spec)
    return own_id
