"""From the fields a client describes to those a database gets, or everything wrong with them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from models.base import Id
from models.databases.rules.defaults import default_text
from models.databases.rules.fields import FieldSpec, Option
from models.databases.rules.kinds import (
    AVAILABLE_KINDS,
    OPTION_KINDS,
    TITLE_KEY,
    UNAVAILABLE_KINDS,
    FieldKind,
)
from models.databases.rules.settings import settings_problems
from models.databases.rules.values import FieldValueError, check_storable
from models.databases.shapes import MAX_FIELDS, CreateField, CreateOption
from models.keys import first_free, slug
from runtime.errors import Detail, UnsupportedError, ValidationError

MAX_SETTINGS_DEPTH = 16
DEFAULT_COLOR = "gray"

MakeId = Callable[[], Id]

_STATUS_OPTIONS = (
    CreateOption(name="To do", color="gray"),
    CreateOption(name="In progress", color="blue"),
    CreateOption(name="Done", color="green"),
)
_STATUS_GROUPS = {"todo": ["to_do"], "in_progress": ["in_progress"], "done": ["done"]}


def plan_fields(bodies: Sequence[CreateField], make_id: MakeId) -> list[FieldSpec]:
    """The fields of a new database, the title first where none was described.

    Raises `ValidationError` with every problem at its path, `UnsupportedError` for a kind that
    cannot be used yet.
    """
    planner = _Planner(make_id)
    planned = planner.fields(bodies)
    if all(field.key != TITLE_KEY for field in planned):
        planned = [_title(make_id), *planned]
    if len(planned) > MAX_FIELDS:
        planner.problems.append(Detail("fields", f"must be at most {MAX_FIELDS} with the title"))
    if planner.problems:
        raise ValidationError(_summary(planner.problems), planner.problems)
    _refuse_unavailable(bodies)
    return planned


def _summary(problems: Sequence[Detail]) -> str:
    first = problems[0]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{first.path}: {first.message}{more}"


def _refuse_unavailable(bodies: Sequence[CreateField]) -> None:
    for place, body in enumerate(bodies):
        if body.kind in UNAVAILABLE_KINDS:
            usable = ", ".join(AVAILABLE_KINDS)
            raise UnsupportedError(
                f"fields.{place}.kind: {body.kind} fields cannot be created yet. Use one of: "
                f"{usable}."
            )


def _title(make_id: MakeId) -> FieldSpec:
    return FieldSpec(id=make_id(), key=TITLE_KEY, label="Title", kind=FieldKind.TEXT)


class _Planner:
    """Plans one field after the other and collects what is wrong on the way."""

    def __init__(self, make_id: MakeId) -> None:
        self.make_id = make_id
        self.problems: list[Detail] = []

    def fields(self, bodies: Sequence[CreateField]) -> list[FieldSpec]:
        keys = self._keys([(body.label, body.key) for body in bodies], "field", "fields")
        first = 0 if TITLE_KEY in keys else 1
        return [
            self._field(body, key, first + place, f"fields.{place}")
            for place, (body, key) in enumerate(zip(bodies, keys, strict=True))
        ]

    def _keys(self, named: Sequence[tuple[str, str | None]], noun: str, path: str) -> list[str]:
        """Given keys as they are, the others derived from their names around them."""
        taken: set[str] = set()
        for place, (_, key) in enumerate(named):
            if key in taken:
                self._refuse(f"{path}.{place}.key", f"is the key of an earlier {noun}")
            if key is not None:
                taken.add(key)
        keys = []
        for name, given in named:
            key = given or first_free(slug(name, noun), taken)
            taken.add(key)
            keys.append(key)
        return keys

    def _field(self, body: CreateField, key: str, position: int, path: str) -> FieldSpec:
        options = self._options(body, f"{path}.options")
        field = FieldSpec(
            id=self.make_id(),
            key=key,
            label=body.label,
            kind=body.kind,
            required=body.required,
            options=options,
            settings=self._settings(body, options, f"{path}.settings"),
            position=position if body.order is None else body.order,
        )
        if field.title and field.kind is not FieldKind.TEXT:
            self._refuse(f"{path}.kind", "must be text for the field with the key title")
        if field.system and field.required:
            self._refuse(f"{path}.required", "cannot be set: the platform writes the value")
        return self._with_default(field, body.default_value, f"{path}.defaultValue")

    def _with_default(self, field: FieldSpec, raw: Any, path: str) -> FieldSpec:
        if field.kind in UNAVAILABLE_KINDS:
            return field
        try:
            return replace(field, default=default_text(field, raw))
        except FieldValueError as problem:
            self._refuse(path, str(problem))
            return field

    def _settings(self, body: CreateField, options: Sequence[Option], path: str) -> dict[str, Any]:
        settings = body.settings or {}
        if body.kind is FieldKind.STATUS and not body.options and "groups" not in settings:
            settings = {**settings, "groups": _STATUS_GROUPS}
        try:
            check_storable(settings, MAX_SETTINGS_DEPTH)
        except FieldValueError as problem:
            self._refuse(path, str(problem))
            return {}
        option_keys = {option.key for option in options}
        found = settings_problems(body.kind, settings, option_keys, path)
        self.problems.extend(found)
        return {} if found else settings

    def _options(self, body: CreateField, path: str) -> tuple[Option, ...]:
        given: Sequence[CreateOption] = body.options or ()
        if given and body.kind not in OPTION_KINDS:
            self._refuse(path, f"cannot be given for a field of the kind {body.kind}")
            return ()
        if body.kind is FieldKind.STATUS and not given:
            given = _STATUS_OPTIONS
        keys = self._keys([(option.name, option.key) for option in given], "option", path)
        return tuple(
            Option(
                id=str(self.make_id()),
                key=key,
                name=option.name,
                color=option.color or DEFAULT_COLOR,
                order=place,
            )
            for place, (option, key) in enumerate(zip(given, keys, strict=True))
        )

    def _refuse(self, path: str, message: str) -> None:
        self.problems.append(Detail(path, message))
