"""Planning fields, their conversion and the layout of record pages; notes on field kinds. Pure."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from models.core.base import EXAMPLE_ID, JsonObject
from models.core.keys import first_free, slug
from models.core.problems import an, refuse
from models.core.values import InvalidValueError
from models.data.databases import shapes
from models.data.fields.rules import fields as field_specs
from models.data.fields.rules import options as field_options
from models.data.fields.rules.settings import read_settings
from models.data.fields.rules.value_conversion import LOST, convert_value, convertible, option_names
from models.data.fields.rules.values import default_text, default_value
from models.data.fields.shapes import MAX_FIELDS, CreateField, CreateOption, UpdateField
from runtime.errors import Detail, UnsupportedError

GIVEN_BY_PLATFORM = {field_specs.FieldKind.RELATION: ("inverseFieldId",)}
"""Settings that the platform sets and clients must not."""


def plan_fields(
    bodies: Sequence[CreateField], make_id: field_options.MakeId
) -> list[field_specs.FieldSpec]:
    """The fields of a new database, the title first where none was described.

    Raises `ValidationError` with every problem at its path.
    """
    planner = _Planner(make_id)
    entries = [(body.label, body.key) for body in bodies]
    keys = field_options.keys_of(entries, "field", "fields", planner.problems)
    first = 0 if field_specs.TITLE_KEY in keys else 1
    specs = [
        planner.field(body, key, first + place, f"fields.{place}.")
        for place, (body, key) in enumerate(zip(bodies, keys, strict=True))
    ]
    if first:
        specs = [_title(make_id), *specs]
    if len(specs) > MAX_FIELDS:
        planner.refuse("fields", f"must be at most {MAX_FIELDS}, including the title")
    refuse(planner.problems)
    return specs


def plan_field(
    body: CreateField, make_id: field_options.MakeId, taken_keys: Collection[str], position: float
) -> field_specs.FieldSpec:
    """One more field of a database in which these keys are taken.

    Raises `ValidationError` with every problem at its path.
    """
    planner = _Planner(make_id)
    key = body.key or first_free(slug(body.label, "field"), taken_keys)
    spec = planner.field(body, key, position, "")
    refuse(planner.problems)
    return spec


def plan_change(
    spec: field_specs.FieldSpec, body: UpdateField, make_id: field_options.MakeId
) -> field_specs.FieldSpec:
    """A field as an update leaves it. Raises `ValidationError` with every problem at its path."""
    planner = _Planner(make_id)
    changed = planner.changed(spec, body)
    refuse(planner.problems)
    return changed


def plan_conversion(
    spec: field_specs.FieldSpec, body: shapes.ConvertField, make_id: field_options.MakeId
) -> field_specs.FieldSpec:
    """The field a conversion begins with: the first options, and no default.

    Raises `UnsupportedError` for a pair of kinds that have no values in common, `ValidationError`
    with every problem at its path.
    """
    if spec.title:
        raise UnsupportedError("The title field cannot be converted: it is always text.")
    if not convertible(spec.kind, body.kind):
        kinds = ", ".join(kind for kind in field_specs.FieldKind if convertible(spec.kind, kind))
        usable = f"It can be converted to: {kinds}." if kinds else "It cannot be converted."
        raise UnsupportedError(
            f"{an(spec.kind).capitalize()} field cannot become {body.kind}. {usable}"
        )
    planner = _Planner(make_id)
    converted = planner.converted(spec, body)
    refuse(planner.problems)
    return converted


def _title(make_id: field_options.MakeId) -> field_specs.FieldSpec:
    return field_specs.FieldSpec(
        id=make_id(), key=field_specs.TITLE_KEY, label="Title", kind=field_specs.FieldKind.TEXT
    )


def _default_groups(options: Sequence[field_specs.Option]) -> JsonObject:
    """The groups of the usual options; every other option is in `todo`."""
    keys = [option.key for option in options]
    usual = [key for group in field_options.STATUS_GROUPS.values() for key in group]
    return (
        field_options.STATUS_GROUPS
        if keys == usual
        else {"todo": keys, "in_progress": [], "done": []}
    )


class _Planner:
    """Plans fields one by one and collects their problems.

    A `path` is the prefix of the paths in the field's body: empty, or ending in a dot.
    """

    def __init__(self, make_id: field_options.MakeId) -> None:
        self.make_id = make_id
        self.problems: list[Detail] = []

    def refuse(self, path: str, message: str) -> None:
        self.problems.append(Detail(path, message))

    def field(
        self, body: CreateField, key: str, position: float, path: str
    ) -> field_specs.FieldSpec:
        options = self._options(body, f"{path}options")
        field = field_specs.FieldSpec(
            id=self.make_id(),
            key=key,
            label=body.label,
            kind=body.kind,
            required=body.required,
            options=options,
            settings=self._settings(body, options, f"{path}settings"),
            position=position if body.order is None else body.order,
        )
        if field.title and field.kind is not field_specs.FieldKind.TEXT:
            self.refuse(f"{path}kind", "must be text for the field with the key title")
        self._check_required(field, path)
        return self._with_default(field, body.default_value, f"{path}defaultValue")

    def changed(self, spec: field_specs.FieldSpec, body: UpdateField) -> field_specs.FieldSpec:
        if body.key not in {None, spec.key}:
            self.refuse("key", "cannot change by an update: rename the field")
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

    def converted(
        self, spec: field_specs.FieldSpec, body: shapes.ConvertField
    ) -> field_specs.FieldSpec:
        described = CreateField.model_construct(
            label=spec.label, kind=body.kind, options=body.options, settings=body.settings
        )
        carried = body.options is None and {spec.kind, body.kind} <= field_specs.OPTION_KINDS
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

    def _check_required(self, field: field_specs.FieldSpec, path: str) -> None:
        if field.required and field.system:
            self.refuse(f"{path}required", "cannot be set: the platform writes the value")
        elif field.required and not field.stored:
            self.refuse(f"{path}required", f"cannot be set for {an(field.kind)} field")

    def _with_default(
        self, field: field_specs.FieldSpec, raw: object, path: str
    ) -> field_specs.FieldSpec:
        try:
            return replace(field, default=default_text(field, raw))
        except InvalidValueError as problem:
            self.refuse(path, str(problem))
            return field

    def _settings(
        self, body: CreateField, options: Sequence[field_specs.Option], path: str
    ) -> JsonObject:
        settings = body.settings or {}
        if (
            body.kind is field_specs.FieldKind.STATUS
            and not body.options
            and "groups" not in settings
        ):
            settings = {**settings, "groups": _default_groups(options)}
        for name in GIVEN_BY_PLATFORM.get(body.kind, ()):
            if name in settings:
                self.refuse(f"{path}.{name}", "cannot be set: the platform assigns it")
        keys = {option.key for option in options}
        read = read_settings(body.kind, settings, keys, path)
        self.problems.extend(read.problems)
        return read.settings

    def _changed_settings(
        self, new_spec: field_specs.FieldSpec, given: JsonObject | None
    ) -> JsonObject:
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
                self.refuse(f"settings.{name}", "cannot change: create another relation field")
        return {**settings, **fixed}

    def _options(self, body: CreateField, path: str) -> tuple[field_specs.Option, ...]:
        options: Sequence[CreateOption] = body.options or ()
        if options and body.kind not in field_specs.OPTION_KINDS:
            self.refuse(path, f"cannot be set for {an(body.kind)} field")
            return ()
        if body.kind is field_specs.FieldKind.STATUS and not options:
            options = field_options.STATUS_OPTIONS
        return field_options.new_options(options, self.make_id, path, self.problems)

    def _changed_options(
        self, spec: field_specs.FieldSpec, body: UpdateField
    ) -> tuple[field_specs.Option, ...]:
        given = body.options or ()
        if given and spec.kind not in field_specs.OPTION_KINDS:
            self.refuse("options", f"cannot be set for {an(spec.kind)} field")
            return ()
        return field_options.changed_options(
            spec.options, given, self.make_id, "options", self.problems
        )


_GROWING = frozenset({field_specs.FieldKind.SELECT, field_specs.FieldKind.MULTI_SELECT})


class Converter:
    """Converts the values of one field; `to_spec` is the field after the conversion.

    Where the new field may get options, each value adds those it names.
    """

    def __init__(
        self,
        from_spec: field_specs.FieldSpec,
        to_spec: field_specs.FieldSpec,
        make_id: field_options.MakeId,
        *,
        grows: bool,
    ) -> None:
        self._from = from_spec
        self._growth = field_options.OptionGrowth(to_spec.options, make_id)
        self._grows = grows and to_spec.kind in _GROWING
        self.to_spec = to_spec

    def convert(self, values: Iterable[Any]) -> list[Any]:
        """The stored forms of these values, None for each lost value."""
        inputs = list(values)
        if self._grows:
            for value in inputs:
                for name in option_names(self._from, self.to_spec, value):
                    self._growth.add(name)
            self.to_spec = replace(self.to_spec, options=tuple(self._growth.options))
        results = (convert_value(self._from, self.to_spec, value) for value in inputs)
        return [None if value is LOST else value for value in results]

    def with_default(self) -> field_specs.FieldSpec:
        """The field after the conversion, with the old default converted."""
        before = default_value(self._from)
        after = LOST if before is None else convert_value(self._from, self.to_spec, before)
        try:
            kept = None if after is LOST else default_text(self.to_spec, after)
        except InvalidValueError:
            kept = None
        return replace(self.to_spec, default=kept)


def described(spec: field_specs.FieldSpec) -> JsonObject:
    """The parts of a field that its conversion stores in the job."""
    return {
        "kind": spec.kind.value,
        "settings": spec.settings,
        "options": [option.wire() for option in spec.options],
    }


def with_described(spec: field_specs.FieldSpec, description: JsonObject) -> field_specs.FieldSpec:
    """A field with the kind, settings and options that a job stored."""
    return replace(
        spec,
        kind=field_specs.FieldKind(description["kind"]),
        settings=description["settings"],
        options=tuple(field_specs.Option(**option) for option in description["options"]),
        default=None,
        index_id=None,
        index_ready=False,
    )


def is_unchanged(spec: field_specs.FieldSpec, description: JsonObject) -> bool:
    """True when a field is as the job stored it, apart from added options."""
    now = described(spec)
    ids = {option["id"] for option in description["options"]}
    options = [option for option in now["options"] if option["id"] in ids]
    return {**now, "options": options} == description


def default_layout() -> JsonObject:
    return {
        "version": 1,
        "pageWidth": shapes.PageWidth.STANDARD.value,
        "propertyColumns": 1,
        "propertyDensity": shapes.PropertyDensity.COMFORTABLE.value,
        "propertyOrder": [],
        "hiddenFieldKeys": [],
        "sections": [],
        "contentPosition": shapes.ContentPosition.BELOW.value,
        "showComments": True,
        "showActivity": True,
        "pinnedFieldKeys": [],
        "autoAddNewFields": True,
        "collapsedSectionIds": [],
        "relationViews": {},
        "showReferences": True,
    }


_KEY_LISTS = ("propertyOrder", "hiddenFieldKeys", "pinnedFieldKeys")


def changed_layout(layout: JsonObject, body: shapes.ChangeRecordLayout) -> JsonObject:
    """The layout with what a body names, one version on."""
    named = body.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"version"})
    return {**layout, **named, "version": layout["version"] + 1}


def layout_problems(layout: JsonObject, fields: field_specs.FieldSpecs, path: str) -> list[Detail]:
    """Problems of a layout: keys that name no field, and sections that overlap or repeat."""
    hints = field_specs.FieldHints(fields)
    problems = [
        Detail(f"{path}.{place}", hints.no_field(key))
        for place, key in _named_fields(layout)
        if key not in fields
    ]
    sections = [section["id"] for section in layout["sections"]]
    problems += [
        Detail(f"{path}.sections.{place}.id", "is the id of an earlier section")
        for place, id_ in enumerate(sections)
        if id_ in sections[:place]
    ]
    problems += [
        Detail(f"{path}.collapsedSectionIds.{place}", "is not the id of a section")
        for place, id_ in enumerate(layout["collapsedSectionIds"])
        if id_ not in sections
    ]
    problems += [
        Detail(f"{path}.relationViews.{key}", hints.no_relation(key))
        for key in layout["relationViews"]
        if key not in fields or not fields[key].relation
    ]
    return problems


def _named_fields(layout: JsonObject) -> Iterator[tuple[str, str]]:
    for name in _KEY_LISTS:
        for place, key in enumerate(layout[name]):
            yield f"{name}.{place}", key
    for number, section in enumerate(layout["sections"]):
        for place, key in enumerate(section["fieldKeys"]):
            yield f"sections.{number}.fieldKeys.{place}", key


def layout_with(
    layout: JsonObject, fields: field_specs.FieldSpecs, new_keys: list[str]
) -> JsonObject:
    """The layout after fields were added, which come last in the order."""
    if not layout["autoAddNewFields"]:
        return layout
    order = layout["propertyOrder"] or [
        key for key, spec in fields.items() if not spec.title and key not in new_keys
    ]
    return {
        **layout,
        "propertyOrder": [*order, *(key for key in new_keys if key not in order)],
        "version": layout["version"] + 1,
    }


def layout_without(layout: JsonObject, key: str) -> JsonObject:
    """The layout after a field was removed."""
    changes: dict[str, Any] = {name: _keys_without(layout[name], key) for name in _KEY_LISTS}
    changes["sections"] = [
        {**section, "fieldKeys": _keys_without(section["fieldKeys"], key)}
        for section in layout["sections"]
    ]
    changes["relationViews"] = {
        name: view for name, view in layout["relationViews"].items() if name != key
    }
    new_layout = {**layout, **changes}
    return layout if new_layout == layout else {**new_layout, "version": layout["version"] + 1}


def _keys_without(keys: list[str], key: str) -> list[str]:
    return [each for each in keys if each != key]


class KindNote(NamedTuple):
    """The content of a field of the kind in words, and a value as the API shows it."""

    says: str
    value: Any


KIND_NOTES: dict[field_specs.FieldKind, KindNote] = {
    field_specs.FieldKind.TEXT: KindNote("One line of text.", "Blue chair"),
    field_specs.FieldKind.LONG_TEXT: KindNote("Text of several lines.", "First line\nsecond line"),
    field_specs.FieldKind.RICH_TEXT: KindNote(
        "Text in Markdown.", "**Fragile**, see [label](https://x.test)"
    ),
    field_specs.FieldKind.NUMBER: KindNote("A number.", 12.5),
    field_specs.FieldKind.CURRENCY: KindNote(
        "An amount of money in the currency of the field.", 129.9
    ),
    field_specs.FieldKind.PERCENT: KindNote("A percentage; 12.5 is shown as 12.5 %.", 12.5),
    field_specs.FieldKind.RATING: KindNote("A whole number from 0 to 10.", 4),
    field_specs.FieldKind.DURATION: KindNote("A duration in milliseconds.", 5_400_000),
    field_specs.FieldKind.CHECKBOX: KindNote("True or false.", True),
    field_specs.FieldKind.DATE: KindNote("A date.", "2026-01-31"),
    field_specs.FieldKind.DATETIME: KindNote("A moment in UTC.", "2026-01-31T09:00:00.000Z"),
    field_specs.FieldKind.TIME: KindNote("A time of day, `HH:MM` or `HH:MM:SS`.", "09:30"),
    field_specs.FieldKind.SELECT: KindNote("The key of one option.", "open"),
    field_specs.FieldKind.MULTI_SELECT: KindNote("The keys of options.", ["open", "done"]),
    field_specs.FieldKind.STATUS: KindNote(
        "The key of one option; options are in three groups.", "open"
    ),
    field_specs.FieldKind.PERSON: KindNote("The ids of members.", [EXAMPLE_ID]),
    field_specs.FieldKind.EMAIL: KindNote("An email address.", "ada@example.com"),
    field_specs.FieldKind.URL: KindNote("An http or https URL.", "https://example.com/chair"),
    field_specs.FieldKind.PHONE: KindNote("A phone number.", "+49 30 901820"),
    field_specs.FieldKind.FILE: KindNote("The `fileId`s of uploaded files.", [EXAMPLE_ID]),
    field_specs.FieldKind.JSON: KindNote("Any JSON value.", {"width": 40, "tags": ["oak"]}),
    field_specs.FieldKind.LOCATION: KindNote(
        "A place in degrees; `label` is optional.",
        {"lat": 52.52, "lng": 13.405, "label": "Berlin"},
    ),
    field_specs.FieldKind.RELATION: KindNote(
        "The ids of records of another database, written and shown in `relations`.", [EXAMPLE_ID]
    ),
    field_specs.FieldKind.ROLLUP: KindNote(
        "An aggregate of related records, shown in `computed`.", 389.7
    ),
    field_specs.FieldKind.LOOKUP: KindNote(
        "The values of a field of related records, shown in `computed`.", ["open", "done"]
    ),
    field_specs.FieldKind.FORMULA: KindNote(
        "The result of a CEL expression, shown in `computed`.", 259.8
    ),
    field_specs.FieldKind.BUTTON: KindNote("No value: pressing it runs an action.", None),
    field_specs.FieldKind.TIMER: KindNote(
        "The milliseconds of the record's completed time entries, and the running entry, in"
        " `computed`; queries and formulas use `totalMs`.",
        {"totalMs": 5_400_000, "runningEntryId": None},
    ),
    field_specs.FieldKind.AUTO_NUMBER: KindNote(
        "A unique number for each record, in `system`.", 42
    ),
    field_specs.FieldKind.CREATED_AT: KindNote(
        "When it was created, in `system`.", "2026-01-31T09:00:00.000Z"
    ),
    field_specs.FieldKind.UPDATED_AT: KindNote(
        "When it was last updated, in `system`.", "2026-01-31T09:00:00.000Z"
    ),
    field_specs.FieldKind.CREATED_BY: KindNote("The user who created it, in `system`.", EXAMPLE_ID),
    field_specs.FieldKind.UPDATED_BY: KindNote(
        "The user who last updated it, in `system`.", EXAMPLE_ID
    ),
}
