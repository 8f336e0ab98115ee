"""What a write to a record may say, checked against the fields of its database (decisions C5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from models.databases.rules.defaults import default_value
from models.databases.rules.fields import FieldSpec, FieldSpecs
from models.databases.rules.kinds import TITLE_KEY, FieldKind
from models.databases.rules.registry import KIND_RULES
from models.databases.rules.values import FieldValueError
from runtime.errors import Detail, ValidationError

MAX_PROBLEMS = 20
_ABSENT: Any = object()


@dataclass(frozen=True, slots=True)
class Change:
    """The values a write sets and the keys it clears; both may name the title."""

    values: dict[str, Any] = field(default_factory=dict)
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
        return {key: value for key, value in self.values.items() if key != TITLE_KEY}

    def people(self, fields: FieldSpecs) -> dict[str, str]:
        """User id → a path where it is named; commands ask whether they are members."""
        return {
            user: f"data.{key}"
            for key, value in self.values.items()
            if fields[key].kind is FieldKind.PERSON
            for user in value
        }


def with_title(data: Mapping[str, Any] | None, title: str | None) -> dict[str, Any]:
    """The written values with `title`, which may be given in either place or alike in both."""
    written = dict(data or {})
    if title is None:
        return written
    if written.get(TITLE_KEY, title) != title:
        raise ValidationError.at("data.title", "says another title than `title` does")
    return {**written, TITLE_KEY: title}


def check_new(fields: FieldSpecs, written: Mapping[str, Any]) -> Change:
    """The values of a new record: those written, then defaults, then nothing required missing.

    Raises `ValidationError` with every problem at `data.<fieldKey>`.
    """
    defaults = {
        key: value
        for key, spec in fields.items()
        if key not in written and (value := default_value(spec)) is not None
    }
    change, problems = _check(fields, {**defaults, **written})
    problems += [
        Detail(f"data.{key}", "is required")
        for key, spec in fields.items()
        if spec.required and key not in change.values and key not in written
    ]
    _refuse(problems)
    return Change(change.values)


def check_patch(fields: FieldSpecs, written: Mapping[str, Any]) -> Change:
    """The values a PATCH sets and clears.

    Raises `ValidationError` with every problem at `data.<fieldKey>`.
    """
    change, problems = _check(fields, written)
    _refuse(problems)
    return change


def _check(fields: FieldSpecs, written: Mapping[str, Any]) -> tuple[Change, list[Detail]]:
    values: dict[str, Any] = {}
    cleared: set[str] = set()
    problems: list[Detail] = []
    for key, value in written.items():
        try:
            spec = _writable(fields, key)
            if value is None and not spec.required:
                cleared.add(key)
            else:
                values[key] = _checked(spec, value)
        except FieldValueError as problem:
            problems.append(Detail(f"data.{shown_key(key)}", str(problem)))
    return Change(values, frozenset(cleared)), problems


def _writable(fields: FieldSpecs, key: str) -> FieldSpec:
    spec = fields.get(key)
    if spec is None:
        raise FieldValueError("is not the key of a field of this database")
    if spec.system:
        raise FieldValueError("cannot be written: the platform writes this field")
    if spec.kind not in KIND_RULES:
        raise FieldValueError(f"cannot be written: it is a {spec.kind} field")
    return spec


def _checked(spec: FieldSpec, value: Any) -> Any:
    if spec.required and (value is None or value in ("", [])):
        raise FieldValueError("is required and cannot be empty")
    check = KIND_RULES[spec.kind].check
    assert check is not None, "system fields were refused before"
    return check(spec, value)


def shown_key(key: str) -> str:
    """A client's key in a message: bounded, and printable whatever it contains."""
    return key[:100].encode("utf-8", "backslashreplace").decode()


def _refuse(problems: Sequence[Detail]) -> None:
    if problems:
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise ValidationError(f"{first.path}: {first.message}{more}", problems[:MAX_PROBLEMS])
