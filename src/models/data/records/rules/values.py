"""Values written to a record: checked, with new options, matched by upserts, as COPY lines."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from models.core.access.rules import Actor
from models.core.base import Id
from models.core.filters.grammar import OPERATORS, Op
from models.core.keys import first_free, slug
from models.core.problems import an
from models.core.values import InvalidValueError, is_blank, text
from models.data.fields.rules import fields as field_specs
from models.data.fields.rules.options import DEFAULT_COLOR
from models.data.fields.rules.values import KIND_RULES, default_value, is_plain, value_form
from models.data.fields.shapes import MAX_OPTIONS
from runtime.errors import Detail, ValidationError
from runtime.postgresql import copy_format


class Change(NamedTuple):
    """The values a write sets and the keys it clears; both may name the title."""

    values: Mapping[str, Any]
    cleared: frozenset[str] = frozenset()

    @property
    def title(self) -> str | None:
        """The new title, empty when cleared, or None where it stays."""
        if field_specs.TITLE_KEY in self.cleared:
            return ""
        return self.values.get(field_specs.TITLE_KEY)

    @property
    def data(self) -> dict[str, Any]:
        """The values without the title, which has its own column."""
        data = dict(self.values)
        data.pop(field_specs.TITLE_KEY, None)
        return data


NO_CHANGE = Change(MappingProxyType({}))


def with_title(data: Mapping[str, Any] | None, title: str | None, at: str = "") -> dict[str, Any]:
    """The written values with `title`, which may be given in either place or alike in both."""
    written = dict(data or {})
    if title is not None and written.setdefault(field_specs.TITLE_KEY, title) != title:
        raise ValidationError.at(f"{at}data.title", "differs from `title`")
    return written


class DataCheck:
    """Checks values against the fields of one database, for as many records as there are.

    Problems stand at `data.<fieldKey>` behind the prefix `at`.
    """

    def __init__(self, fields: field_specs.FieldSpecs) -> None:
        self._fields = fields
        self.hints = field_specs.FieldHints(fields)
        self._checks = {
            key: (spec, check)
            for key, spec in fields.items()
            if spec.stored and (check := KIND_RULES[spec.kind].check) is not None
        }
        self._defaults = {
            key: value
            for key, spec in fields.items()
            if spec.stored and (value := default_value(spec)) is not None
        }
        self._required = [key for key, spec in fields.items() if spec.stored and spec.required]

    def plain_keys(self, rows: Iterable[Mapping[str, Any]]) -> Set[str]:
        """Keys of the fields that store the values of all these rows, and defaults, as they are.

        `new` and `patch` take them for these rows unseen: at once, most are checked faster.
        """
        columns: dict[str, list[Any]] = {key: [value] for key, value in self._defaults.items()}
        for row in rows:
            for key, value in row.items():
                columns.setdefault(key, []).append(value)
        return {
            key
            for key, values in columns.items()
            if key in self._checks and is_plain(self._fields[key], values)
        }

    def new(
        self, data: Mapping[str, Any], at: str = "", plain: Set[str] = frozenset()
    ) -> tuple[Change, list[Detail]]:
        """The values of a new record: those written, then defaults; nothing required missing."""
        written = {**self._defaults, **data} if self._defaults else data
        change, problems = self.patch(written, at, plain)
        problems += [
            Detail(f"{at}data.{key}", "is required")
            for key in self._required
            if key not in change.values and key not in data
        ]
        return Change(change.values) if change.cleared else change, problems

    def patch(
        self, data: Mapping[str, Any], at: str = "", plain: Set[str] = frozenset()
    ) -> tuple[Change, list[Detail]]:
        """The values that are set and the keys that are cleared, by null."""
        if data.keys() <= plain:
            return Change(data), []
        values: dict[str, Any] = {}
        cleared: set[str] = set()
        problems: list[Detail] = []
        for key, value in data.items():
            try:
                checked = self._checked(key, value)
                if checked is None:
                    cleared.add(key)
                else:
                    values[key] = checked
            except InvalidValueError as problem:
                problems.append(Detail(f"{at}data.{shown_key(key)}", str(problem)))
        return Change(values, frozenset(cleared)), problems

    def unwritable(self, key: str) -> str | None:
        """The reason why no value can be written under a key; None where one can."""
        return None if key in self._checks else self._why_not(key)

    def _checked(self, key: str, value: object) -> field_specs.FieldValue:
        """The stored form of a value, None for null."""
        if key not in self._checks:
            raise InvalidValueError(self._why_not(key))
        spec, check = self._checks[key]
        if spec.required and is_blank(value):
            raise InvalidValueError("is required and cannot be empty")
        return None if value is None else check(spec, value)

    def _why_not(self, key: str) -> str:
        spec = self._fields.get(key)
        if spec is None:
            return self.hints.no_field(key)
        if spec.system:
            return "cannot be written: the platform writes this field"
        if spec.relation:
            return f"cannot be written here: set it as relations.{spec.key}"
        return f"cannot be written: it is {an(spec.kind)} field"


def ids_in(
    change: Change, fields: field_specs.FieldSpecs, kind: field_specs.FieldKind
) -> Iterator[tuple[str, str]]:
    """Each id in the values of the fields of a kind, behind the key of its field."""
    for key, value in change.values.items():
        if fields[key].kind is kind:
            for entry in value:
                yield key, entry


def shown_key(key: str) -> str:
    """A client's key in a message, bounded and printable."""
    return key[:100].encode("utf-8", "backslashreplace").decode()


Value = TypeVar("Value")

MAX_OPTION_NAME = 100


@dataclass(frozen=True, slots=True)
class Growth:
    """The schema with new options, the written values with keys in place of names.

    `keys` name the fields that got options.
    """

    schema: field_specs.Schema
    rows: Sequence[Mapping[str, Any]]
    keys: frozenset[str]


def grow_options(
    schema: field_specs.Schema, rows: Sequence[Mapping[str, Any]], make_id: Callable[[], Id]
) -> Growth:
    """Give each unknown choice of a field that allows it an option, or the option of that name.

    `rows` are the values of one record after the other. What could be no option's name is left
    as it is, for the value check to refuse.
    """
    growing = {
        key: GrowingField(spec, make_id) for key, spec in schema.fields.items() if may_grow(spec)
    }
    if not growing:
        return Growth(schema, rows, frozenset())
    keyed_rows = [
        {key: _chosen(growing.get(key), value) for key, value in values.items()} for values in rows
    ]
    grown = {key: one.spec for key, one in growing.items() if one.spec is not schema.fields[key]}
    fields = {**schema.fields, **grown}
    return Growth(replace(schema, fields=fields), keyed_rows, frozenset(grown))


def may_grow(spec: field_specs.FieldSpec | None) -> bool:
    """True when a write may bring options of a field into being."""
    if spec is None or spec.kind not in field_specs.OPTION_KINDS:
        return False
    return bool(spec.settings.get("allowCreate"))


def _chosen(growing: "GrowingField | None", value: object) -> object:
    if growing is None:
        return value
    if isinstance(value, list):
        return [growing.key_of(entry) for entry in value]
    return growing.key_of(value)


class GrowingField:
    """A field that gains options while its values are read: `spec` is the field so far."""

    def __init__(self, spec: field_specs.FieldSpec, make_id: Callable[[], Id]) -> None:
        self.spec = spec
        self.before = frozenset(spec.options)
        self.make_id = make_id
        self._keys = {option.name.casefold(): option.key for option in reversed(spec.options)}

    def key_of(self, value: Value) -> Value | str:
        """The key of the option that a value names; what could be no name is given back."""
        if not isinstance(value, str) or value in self.spec.option_keys or not _is_name(value):
            return value
        name = value.strip()
        known = self._keys.get(name.casefold())
        if known is not None:
            return known
        if len(self.spec.options) >= MAX_OPTIONS:
            return value
        option = field_specs.Option(
            id=str(self.make_id()),
            key=first_free(slug(name, "option"), self.spec.option_keys),
            name=name,
            color=DEFAULT_COLOR,
            order=1 + max((option.order for option in self.spec.options), default=-1),
        )
        self.spec = replace(self.spec, options=(*self.spec.options, option))
        self._keys[name.casefold()] = option.key
        return option.key


def _is_name(value: str) -> bool:
    try:
        return bool(text(value, longest=MAX_OPTION_NAME).strip())
    except InvalidValueError:
        return False


MAX_BY = 5


def meant_values(
    fields: field_specs.FieldSpecs, upsert_by: Sequence[str], data: Mapping[str, Any], at: str = ""
) -> tuple[dict[str, Any], list[Detail]]:
    """The values to find a record by, in their stored form, and what is wrong with them.

    Problems stand at `upsertBy.<place>` and `data.<fieldKey>` behind the prefix `at`.
    """
    if not 1 <= len(upsert_by) <= MAX_BY:
        return {}, [Detail(f"{at}upsertBy", f"must name 1 to {MAX_BY} fields")]
    values: dict[str, Any] = {}
    problems: list[Detail] = []
    for place, key in enumerate(upsert_by):
        spec = fields.get(key)
        by = f"{at}upsertBy.{place}"
        if spec is None:
            problems.append(Detail(by, field_specs.no_field(key, fields)))
        elif not _matchable(spec):
            problems.append(Detail(by, f"cannot be matched by: it is {an(spec.kind)} field"))
        else:
            try:
                values[key] = _checked(spec, data.get(key))
            except InvalidValueError as problem:
                problems.append(Detail(f"{at}data.{key}", str(problem)))
    return values, problems


def _matchable(spec: field_specs.FieldSpec) -> bool:
    return KIND_RULES[spec.kind].check is not None and Op.EQ in OPERATORS[value_form(spec)]


def _checked(spec: field_specs.FieldSpec, value: object) -> field_specs.FieldValue:
    if value is None:
        raise InvalidValueError("is needed to find the record")
    check = KIND_RULES[spec.kind].check
    assert check is not None, "fields without a check match nothing"
    return check(spec, value)


COPIED_COLUMNS = (
    "workspace_id",
    "database_id",
    "archived",
    "created_by_user_id",
    "updated_by_user_id",
    "created_at",
    "updated_at",
    "creation_principal_type",
    "creation_run_id",
    "id",
    "title",
    "data",
)
_UUID = copy_format.LENGTH.pack(16)


def lead_of_copies(actor: Actor, database_id: Id, now: datetime) -> bytes:
    """The begin of every line: all that new records of a database have in common."""
    writer = actor.user_id, actor.user_id
    written_by = actor.principal.type.value, actor.principal.run_id
    common = (actor.workspace_id, database_id, False, *writer, now, now, *written_by)
    return (
        copy_format.columns(len(COPIED_COLUMNS))
        + b"".join([copy_format.value(one) for one in common])
        + _UUID
    )


def copied_record(lead: bytes, record_id: int, title: str, values: bytes) -> bytes:
    """The line of a record; `values` is JSON."""
    written = title.encode()
    parts = (
        lead,
        record_id.to_bytes(16),
        copy_format.LENGTH.pack(len(written)),
        written,
        copy_format.LENGTH_OF_JSON.pack(len(values) + 1, 1),
        values,
    )
    return b"".join(parts)
