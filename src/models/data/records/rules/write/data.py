"""Writes to a record, checked against the fields of its database (decisions C5)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any, NamedTuple

from models.core.problems import an
from models.core.values import InvalidValueError
from models.data.fields.rules.defaults import default_value
from models.data.fields.rules.field_keys import FieldHints
from models.data.fields.rules.fields import FieldSpecs, FieldValue
from models.data.fields.rules.kinds import TITLE_KEY, FieldKind
from models.data.fields.rules.registry import KIND_RULES, is_plain
from runtime.errors import Detail, ValidationError

MAX_PROBLEMS = 20


class Change(NamedTuple):
    """The values a write sets and the keys it clears; both may name the title."""

    values: Mapping[str, Any]
    cleared: frozenset[str] = frozenset()

    @property
    def title(self) -> str | None:
        """The new title, empty when cleared, or None where it stays."""
        if TITLE_KEY in self.cleared:
            return ""
        return self.values.get(TITLE_KEY)

    @property
    def data(self) -> dict[str, Any]:
        """The values without the title, which has its own column."""
        data = dict(self.values)
        data.pop(TITLE_KEY, None)
        return data


NO_CHANGE = Change(MappingProxyType({}))


def with_title(data: Mapping[str, Any] | None, title: str | None, at: str = "") -> dict[str, Any]:
    """The written values with `title`, which may be given in either place or alike in both."""
    written = dict(data or {})
    if title is not None and written.setdefault(TITLE_KEY, title) != title:
        raise ValidationError.at(f"{at}data.title", "says another title than `title` does")
    return written


class DataCheck:
    """Checks values against the fields of one database, for as many records as there are.

    Problems stand at `data.<fieldKey>` behind the prefix `at`.
    """

    def __init__(self, fields: FieldSpecs) -> None:
        self._fields = fields
        self.hints = FieldHints(fields)
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

    def _checked(self, key: str, value: object) -> FieldValue:
        """The stored form of a value, None for null."""
        if key not in self._checks:
            raise InvalidValueError(self._why_not(key))
        spec, check = self._checks[key]
        if spec.required and (value is None or value in ("", [])):
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


def ids_in(change: Change, fields: FieldSpecs, kind: FieldKind) -> Iterator[tuple[str, str]]:
    """Each id in the values of the fields of a kind, behind the key of its field."""
    for key, value in change.values.items():
        if fields[key].kind is kind:
            for entry in value:
                yield key, entry


def shown_key(key: str) -> str:
    """A client's key in a message: bounded, and printable whatever it contains."""
    return key[:100].encode("utf-8", "backslashreplace").decode()


def refuse(problems: Sequence[Detail], most: int = MAX_PROBLEMS) -> None:
    """Raise `ValidationError` with the first problems, if there is any."""
    if problems:
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise ValidationError(f"{first.path}: {first.message}{more}", problems[:most])
