"""The records of a database page: as its URL asks for, in a table, a board or a calendar."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

from api.console.entered import given, read_as
from api.console.records.cells import Cell, cells_of, legend_of
from api.console.records.entry import Comparison, leaf_of
from api.console.rendering import Shell
from api.console.words import plain
from api.kernel.request import ApiRequest
from api.routers.data import records as api
from models.core.base import Id, JsonObject
from models.data.databases.shapes import DatabaseDetail
from models.data.fields.queries import load_schema
from models.data.fields.rules.fields import TITLE_KEY, FieldKind, FieldSpec, FieldSpecs
from models.data.fields.rules.settings import Aggregate, aggregate_result
from models.data.fields.rules.values import value_form
from models.data.records import shapes as record_shapes
from models.data.records.queries import ask_records
from models.data.views.queries import through_its_view
from models.data.views.rules.kinds import ViewKind
from models.data.views.shapes import ViewShape
from runtime.errors import ValidationError

PAGE = 50
FIRST_COLUMNS = 12
"""Columns of a table without a view that says which; the page of a record has all fields."""
MOST_COLUMNS = 40
"""Columns of a table, however many its view shows: a page stays readable and light."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The records that the URL asks for."""

    view: Id | None = None
    search: str | None = None
    sort: str | None = None
    """The key of a field; with `-` before it, the other way round."""
    field: str | None = None
    comparison: Comparison | None = None
    value: str | None = None
    columns: str | None = None
    """The keys of the fields to show, with commas between them."""
    group: str | None = None
    """The key of the field whose values are counted."""
    total: Aggregate | None = None
    """The figure below each column that has it."""
    archived: bool = False

    def query(self, **others: object) -> dict[str, object]:
        """The parameters of the URL, some of them replaced by `others`."""
        return {
            "view": self.view,
            "search": self.search,
            "sort": self.sort,
            "field": self.field,
            "comparison": self.comparison,
            "value": self.value,
            "columns": self.columns,
            "group": self.group,
            "total": self.total,
            "archived": "true" if self.archived else None,
            **others,
        }

    @property
    def narrow(self) -> bool:
        return bool(self.search or (self.field and self.comparison))

    def without(self, columns: Sequence[FieldSpec], key: str) -> dict[str, object]:
        """The parameters of the URL that show the same columns, but for one."""
        return self.query(columns=",".join(one.key for one in columns if one.key != key))

    def body(
        self, fields: FieldSpecs, columns: Sequence[FieldSpec] = ()
    ) -> record_shapes.RecordQuery:
        """The query of the API that asks for the same. Raises ValidationError."""
        query: JsonObject = {"limit": PAGE, "includeArchived": self.archived}
        if self.view is not None:
            query["viewId"] = str(self.view)
        if self.search:
            query["search"] = self.search
        if self.sort:
            direction = "desc" if self.sort.startswith("-") else "asc"
            query["sorts"] = [{"field": self.sort.removeprefix("-"), "direction": direction}]
        if self.group:
            query["groupBy"] = {"field": self.group}
        if self.total is not None:
            query["aggregates"] = [
                {"op": self.total.value, "field": one.key, "as": one.key}
                for one in columns
                if aggregate_result(self.total, value_form(one)) is not None
            ][: record_shapes.MAX_AGGREGATES]
        if self.field and self.comparison:
            query["filter"] = self._filter(fields)
        return read_as(record_shapes.RecordQuery, given(query))

    def _filter(self, fields: FieldSpecs) -> JsonObject:
        assert self.field is not None
        assert self.comparison is not None
        spec = fields.get(self.field)
        if spec is None:
            raise ValidationError.at("field", "Unknown field. Choose a field of this database.")
        return leaf_of(spec, self.comparison, self.value)


@dataclass(frozen=True, slots=True)
class Row:
    """A record of a list."""

    record: record_shapes.RecordDetail
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of records in the columns of a view; a `problem` says why there is none."""

    columns: Sequence[FieldSpec]
    rows: Sequence[Row]
    cursor: str | None
    fields: FieldSpecs
    problem: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    """The names of people in the records, by id."""
    groups: Sequence[record_shapes.RecordGroup] = ()
    group_key: str = ""
    """The field of the groups."""
    more_groups: bool = False
    totals: JsonObject = field(default_factory=dict)
    """The figure below each column, by the key of its field."""


async def listing(
    request: ApiRequest,
    database: DatabaseDetail,
    view: ViewShape | None,
    selection: Selection,
    cursor: str | None,
    limit: int = PAGE,
) -> Listing:
    """The records that the URL asks for. What is wrong with it is told beside the filter."""
    work, actor = request.work, request.actor
    schema = await load_schema(work, actor.workspace_id, database.id)
    shown = {field.key for field in database.fields}
    fields = {key: spec for key, spec in schema.fields.items() if key in shown}
    columns = _columns(fields, view, selection.columns)
    empty = Listing(columns, [], None, fields)
    try:
        body = selection.body(fields, columns).model_copy(update={"cursor": cursor, "limit": limit})
        through = await through_its_view(work, actor, database.id, body)
        result = await ask_records(work, actor, database.id, through, request.services.keys)
    except ValidationError as refusal:
        return replace(empty, problem=refusal.message)
    if result is None:
        return replace(
            empty,
            problem="This query takes too long. An index for it is being built: try again in a"
            " minute, or narrow the filter.",
        )
    stack = fields.get(str(view.manifest.get("stackFieldKey"))) if view is not None else None
    legend = await legend_of(work, actor, result.records, [*columns, *filter(None, [stack])])
    return replace(
        empty,
        rows=[Row(one, cells_of(one, columns, legend)) for one in result.records],
        names=legend.names,
        cursor=result.cursor,
        groups=result.groups or (),
        group_key=through.group_by[0].field if through.group_by else "",
        more_groups=bool(result.groups_truncated),
        totals=result.aggregates or {},
    )


def _columns(
    fields: FieldSpecs, view: ViewShape | None, named_keys: str | None
) -> Sequence[FieldSpec]:
    """The fields that the URL names or a view shows, else the first ones; the title leads."""
    keys = [key for key, spec in fields.items() if spec.kind is not FieldKind.BUTTON]
    if named_keys is not None:
        picked = named_keys.split(",")
        return [fields[TITLE_KEY], *_picked(fields, picked, keys)][:MOST_COLUMNS]
    listed = (view.manifest.get("fields") if view is not None else None) or []
    if listed:
        hidden = {one["key"] for one in listed if one.get("visible") is False}
        named = [one["key"] for one in listed if one["key"] in keys]
        keys = [key for key in named if key not in hidden][:MOST_COLUMNS]
    else:
        keys = keys[:FIRST_COLUMNS]
    ordered = [TITLE_KEY, *(key for key in keys if key != TITLE_KEY)]
    return [fields[key] for key in ordered if key in fields]


def _picked(fields: FieldSpecs, picked: Sequence[str], keys: Sequence[str]) -> Sequence[FieldSpec]:
    return [fields[key] for key in dict.fromkeys(picked) if key in keys and key != TITLE_KEY]


def totals_of(columns: Sequence[FieldSpec]) -> list[tuple[str, str]]:
    """The figures that some of the columns have, to choose from."""
    forms = {value_form(one) for one in columns}
    usable = [one for one in Aggregate if any(aggregate_result(one, form) for form in forms)]
    return [("", "Summary: none"), *((one.value, plain(one).capitalize()) for one in usable)]


def query_of(selection: Selection, listed: Listing) -> JsonObject:
    """The query of the API that asks for the same; an empty one for an invalid selection."""
    try:
        query = selection.body(listed.fields, listed.columns)
    except ValidationError:
        return {}
    return query.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def equal_call(shell: Shell, selection: Selection, listed: Listing) -> Mapping[str, str]:
    """The call of the API that asks for the same."""
    return shell.calls((api.query_records, query_of(selection, listed)))


MOST = 200
"""Records of a board or a calendar; more are reached by its table."""
_ARRANGED = frozenset({ViewKind.BOARD, ViewKind.CALENDAR, ViewKind.GALLERY, ViewKind.TIMELINE})
_WITHOUT = "—"


@dataclass(frozen=True, slots=True)
class Group:
    """Records under one heading."""

    title: str
    color: str
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Day:
    """A day of a calendar."""

    date: date
    rows: Sequence[Row]
    outside: bool
    """It belongs to the month before or after."""


def is_arranged(view: ViewShape | None) -> bool:
    """True for a view that is shown otherwise than as a table."""
    return view is not None and view.kind in _ARRANGED


def board(view: ViewShape, listed: Listing) -> Sequence[Group]:
    """A column for each option of the field that the view stacks by, and one for none."""
    key = view.manifest.get("stackFieldKey")
    spec = listed.fields.get(str(key))
    if spec is None:
        return [Group("All", "", listed.rows)]
    by_value: dict[Any, list[Row]] = defaultdict(list)
    for row in listed.rows:
        values = row.record.data.get(spec.key)
        for value in values if isinstance(values, list) else [values]:
            by_value[value].append(row)
    ordered = sorted(spec.options, key=lambda option: (option.order, option.key))
    groups = [Group(one.name, one.color, by_value.pop(one.key, [])) for one in ordered]
    rest = [Group(_title(listed, value), "", rows) for value, rows in by_value.items()]
    return [*rest, *groups] if rest else groups


def _title(listed: Listing, value: object) -> str:
    """The heading of a column that is not of an option: of people, or of a checkbox."""
    if value is None:
        return _WITHOUT
    if isinstance(value, bool):
        return "Checked" if value else "Not checked"
    return listed.names.get(str(value), str(value))


def values(listed: Listing, row: Row, apart: str | None = None) -> Sequence[Cell]:
    """The values on a card: the filled ones, `apart` from the field that the card stands under."""
    shown = zip(listed.columns[1:], row.cells[1:], strict=True)
    return [
        cell
        for spec, cell in shown
        if not cell.empty and cell.kind != "check" and spec.key != apart
    ]


def month_of(listed: Listing, view: ViewShape, month: str | None, today: date) -> date:
    """The first day of the month to show: the one asked for, else that of the newest record."""
    try:
        return date.fromisoformat(f"{month}-01")
    except ValueError:
        days = [day for row in listed.rows if (day := _day(row, view)) is not None]
        return (max(days) if days else today).replace(day=1)


def calendar(view: ViewShape, listed: Listing, month: date) -> Sequence[Sequence[Day]]:
    """The weeks of a month, from Monday, with the records of each day."""
    by_day: Mapping[date, list[Row]] = defaultdict(list)
    for row in listed.rows:
        if (day := _day(row, view)) is not None:
            by_day[day].append(row)
    first = month - timedelta(days=month.weekday())
    weeks = []
    for week in range(6):
        days = [first + timedelta(days=7 * week + at) for at in range(7)]
        if week and days[0].month != month.month:
            break
        weeks.append([Day(day, by_day[day], day.month != month.month) for day in days])
    return weeks


def beside(month: date, months: int) -> str:
    """The month that is `months` after another, as a URL names it."""
    place = month.year * 12 + month.month - 1 + months
    return f"{place // 12:04}-{place % 12 + 1:02}"


def _day(row: Row, view: ViewShape) -> date | None:
    value = row.record.data.get(str(view.manifest.get("dateFieldKey")))
    try:
        return date.fromisoformat(value[:10]) if isinstance(value, str) else None
    except ValueError:
        return None
