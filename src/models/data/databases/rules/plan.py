"""Planning fields from the bodies of requests, with every problem found."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from models.core.base import JsonObject
from models.core.keys import first_free, slug
from models.core.problems import an
from models.core.values import InvalidValueError
from models.data.databases.shapes import ConvertField
from models.data.fields.rules.defaults import default_text
from models.data.fields.rules.fields import FieldSpec, Option
from models.data.fields.rules.kinds import OPTION_KINDS, TITLE_KEY, FieldKind
from models.data.fields.rules.options import (
    STATUS_GROUPS,
    STATUS_OPTIONS,
    MakeId,
    changed_options,
    keys_of,
    new_options,
)
from models.data.fields.rules.settings import read_settings
from models.data.fields.rules.value_conversion import convertible
from models.data.fields.shapes import MAX_FIELDS, CreateField, CreateOption, UpdateField
from runtime.errors import Detail, UnsupportedError, ValidationError

GIVEN_BY_PLATFORM = {FieldKind.RELATION: ("inverseFieldId",)}
"""Settings that the platform sets and clients must not."""


def plan_fields(bodies: Sequence[CreateField], make_id: MakeId) -> list[FieldSpec]:
    """The fields of a new database, the title first where none was described.

    Raises `ValidationError` with every problem at its path.
    """
    planner = _Planner(make_id)
    entries = [(body.label, body.key) for body in bodies]
    keys = keys_of(entries, "field", "fields", planner.problems)
    first = 0 if TITLE_KEY in keys else 1
    specs = [
        planner.field(body, key, first + place, f"fields.{place}.")
        for place, (body, key) in enumerate(zip(bodies, keys, strict=True))
    ]
    if first:
        specs = [_title(make_id), *specs]
    if len(specs) > MAX_FIELDS:
        planner.refuse("fields", f"must be at most {MAX_FIELDS} with the title")
    refuse(planner.problems)
    return specs


def plan_field(
    body: CreateField, make_id: MakeId, taken_keys: Collection[str], position: float
) -> FieldSpec:
    """One more field of a database in which these keys are taken.

    Raises `ValidationError` with every problem at its path.
    """
    planner = _Planner(make_id)
    key = body.key or first_free(slug(body.label, "field"), taken_keys)
    spec = planner.field(body, key, position, "")
    refuse(planner.problems)
    return spec


def plan_change(spec: FieldSpec, body: UpdateField, make_id: MakeId) -> FieldSpec:
    """A field as an update leaves it. Raises `ValidationError` with every problem at its path."""
    planner = _Planner(make_id)
    changed = planner.changed(spec, body)
    refuse(planner.problems)
    return changed


def plan_conversion(spec: FieldSpec, body: ConvertField, make_id: MakeId) -> FieldSpec:
    """The field a conversion begins with: the first options, and no default.

    Raises `UnsupportedError` for a pair of kinds that have no values in common, `ValidationError`
    with every problem at its path.
    """
    if spec.title:
        raise UnsupportedError("The title field stays text: every record has a title.")
    if not convertible(spec.kind, body.kind):
        kinds = ", ".join(kind for kind in FieldKind if convertible(spec.kind, kind))
        usable = f"It can be converted to: {kinds}." if kinds else "It cannot be converted at all."
        raise UnsupportedError(
            f"{an(spec.kind).capitalize()} field cannot become {body.kind}. {usable}"
        )
    planner = _Planner(make_id)
    converted = planner.converted(spec, body)
    refuse(planner.problems)
    return converted


def refuse(problems: Sequence[Detail]) -> None:
    """Raise `ValidationError` if there are problems."""
    if problems:
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise ValidationError(f"{first.path}: {first.message}{more}", problems)


def _title(make_id: MakeId) -> FieldSpec:
    return FieldSpec(id=make_id(), key=TITLE_KEY, label="Title", kind=FieldKind.TEXT)


def _default_groups(options: Sequence[Option]) -> JsonObject:
    """The groups of the usual options; every other option is in `todo`."""
    keys = [option.key for option in options]
    usual = [key for group in STATUS_GROUPS.values() for key in group]
    return STATUS_GROUPS if keys == usual else {"todo": keys, "in_progress": [], "done": []}


class _Planner:
    """Plans fields one by one and collects their problems.

    A `path` is the prefix of the paths in the field's body: empty, or ending in a dot.
    """

    def __init__(self, make_id: MakeId) -> None:
        self.make_id = make_id
        self.problems: list[Detail] = []

    def refuse(self, path: str, message: str) -> None:
        self.problems.append(Detail(path, message))

    def field(self, body: CreateField, key: str, position: float, path: str) -> FieldSpec:
        options = self._options(body, f"{path}options")
        field = FieldSpec(
            id=self.make_id(),
            key=key,
            label=body.label,
            kind=body.kind,
            required=body.required,
            options=options,
            settings=self._settings(body, options, f"{path}settings"),
            position=position if body.order is None else body.order,
        )
        if field.title and field.kind is not FieldKind.TEXT:
            self.refuse(f"{path}kind", "must be text for the field with the key title")
        self._check_required(field, path)
        return self._with_default(field, body.default_value, f"{path}defaultValue")

    def changed(self, spec: FieldSpec, body: UpdateField) -> FieldSpec:
        if body.key not in {None, spec.key}:
            self.refuse("key", "cannot change: records, views and formulas name the field by it")
        new_spec = replace(
            spec,
            label=spec.label if body.label is None else body.label,
            required=spec.required if body.required is None else body.required,
            position=spec.position if body.order is None else body.order,
        )
        if body.options is not None:
            new_spec = replace(new_spec, options=self._changed_options(spec, body))
        if body.settings is not None or body.options is not None:
            new_spec = replace(new_spec, settings=self._changed_settings(new_spec, body.settings))
        self._check_required(new_spec, "")
        if "default_value" in body.model_fields_set:
            return self._with_default(new_spec, body.default_value, "defaultValue")
        return self._with_default(new_spec, spec.default, "defaultValue")

    def converted(self, spec: FieldSpec, body: ConvertField) -> FieldSpec:
        described = CreateField.model_construct(
            label=spec.label, kind=body.kind, options=body.options, settings=body.settings
        )
        carried = body.options is None and {spec.kind, body.kind} <= OPTION_KINDS
        options = spec.options if carried else self._options(described, "options")
        settings = self._settings(described, options, "settings")
        return replace(
            spec,
            kind=body.kind,
            options=options,
            settings=settings,
            default=None,
            index_id=None,
            index_ready=False,
        )

    def _check_required(self, field: FieldSpec, path: str) -> None:
        if field.required and field.system:
            self.refuse(f"{path}required", "cannot be set: the platform writes the value")
        elif field.required and not field.stored:
            self.refuse(f"{path}required", f"cannot be set for {an(field.kind)} field")

    def _with_default(self, field: FieldSpec, raw: object, path: str) -> FieldSpec:
        try:
            return replace(field, default=default_text(field, raw))
        except InvalidValueError as problem:
            self.refuse(path, str(problem))
            return field

    def _settings(self, body: CreateField, options: Sequence[Option], path: str) -> JsonObject:
        settings = body.settings or {}
        if body.kind is FieldKind.STATUS and not body.options and "groups" not in settings:
            settings = {**settings, "groups": _default_groups(options)}
        for name in GIVEN_BY_PLATFORM.get(body.kind, ()):
            if name in settings:
                self.refuse(f"{path}.{name}", "cannot be set: the platform gives it")
        keys = {option.key for option in options}
        read = read_settings(body.kind, settings, keys, path)
        self.problems.extend(read.problems)
        return read.settings

    def _changed_settings(self, new_spec: FieldSpec, given: JsonObject | None) -> JsonObject:
        before = new_spec.settings
        settings = before if given is None else given
        if new_spec.relation:
            settings = self._same_relation(before, settings)
        read = read_settings(new_spec.kind, settings, new_spec.option_keys, "settings")
        self.problems.extend(read.problems)
        return read.settings

    def _same_relation(self, before: JsonObject, settings: JsonObject) -> JsonObject:
        """The settings of a relation, whose ends cannot change: its links would be meaningless."""
        fixed = {name: before[name] for name in ("databaseId", "symmetric", "inverseFieldId")}
        for name, value in fixed.items():
            if settings.get(name, value) != value:
                self.refuse(f"settings.{name}", "cannot change: make another relation field")
        return {**settings, **fixed}

    def _options(self, body: CreateField, path: str) -> tuple[Option, ...]:
        options: Sequence[CreateOption] = body.options or ()
        if options and body.kind not in OPTION_KINDS:
            self.refuse(path, f"cannot be given for a field of the kind {body.kind}")
            return ()
        if body.kind is FieldKind.STATUS and not options:
            options = STATUS_OPTIONS
        return new_options(options, self.make_id, path, self.problems)

    def _changed_options(self, spec: FieldSpec, body: UpdateField) -> tuple[Option, ...]:
        given = body.options or ()
        if given and spec.kind not in OPTION_KINDS:
            self.refuse("options", f"cannot be given for a field of the kind {spec.kind}")
            return ()
        return changed_options(spec.options, given, self.make_id, "options", self.problems)
