"""Options, inverse fields and button bindings of new fields, beside their settings. Pure."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from models.core.base import Id
from models.core.expressions.rules.cel_text import names
from models.core.expressions.rules.errors import ExpressionError
from models.core.expressions.rules.expressions import compile_expression
from models.core.keys import first_free, slug
from models.data.fields import shapes
from models.data.fields.rules.fields import (
    FieldHints,
    FieldKind,
    FieldSpec,
    FieldSpecs,
    Option,
    no_field,
)
from runtime.errors import Detail

DEFAULT_COLOR = "gray"

STATUS_OPTIONS = (
    shapes.CreateOption(name="To do", color="gray"),
    shapes.CreateOption(name="In progress", color="blue"),
    shapes.CreateOption(name="Done", color="green"),
)
STATUS_GROUPS = {"todo": ["to_do"], "in_progress": ["in_progress"], "done": ["done"]}
"""The options of a status field whose body lists none."""

MakeId = Callable[[], Id]


def keys_of(
    entries: Sequence[tuple[str, str | None]],
    resource: str,
    path: str,
    problems: list[Detail],
    taken_keys: Collection[str] = (),
) -> list[str]:
    """The given keys, and for the others free keys derived from their names."""
    used_keys = set(taken_keys)
    for place, (_, key) in enumerate(entries):
        if key is None:
            continue
        if key in used_keys:
            problems.append(Detail(f"{path}.{place}.key", f"is the key of another {resource}"))
        used_keys.add(key)
    keys = []
    for name, own_key in entries:
        key = own_key or first_free(slug(name, resource), used_keys)
        used_keys.add(key)
        keys.append(key)
    return keys


def new_options(
    bodies: Sequence[shapes.CreateOption], make_id: MakeId, path: str, problems: list[Detail]
) -> tuple[Option, ...]:
    """Options in the order given."""
    keys = keys_of([(body.name, body.key) for body in bodies], "option", path, problems)
    return tuple(
        Option(
            id=str(make_id()),
            key=key,
            name=body.name,
            color=body.color or DEFAULT_COLOR,
            order=place,
        )
        for place, (body, key) in enumerate(zip(bodies, keys, strict=True))
    )


def changed_options(
    options: Sequence[Option],
    bodies: Sequence[shapes.ChangeOption],
    make_id: MakeId,
    path: str,
    problems: list[Detail],
) -> tuple[Option, ...]:
    """The new list of options: those named by id or key are kept, the others are new."""
    existing = [
        _existing_option(options, body, f"{path}.{place}", problems)
        for place, body in enumerate(bodies)
    ]
    entries = [
        (body.name, option.key if option else body.key)
        for body, option in zip(bodies, existing, strict=True)
    ]
    keys = keys_of(entries, "option", path, problems)
    return tuple(
        Option(
            id=option.id if option else str(make_id()),
            key=key,
            name=body.name,
            color=body.color or (option.color if option else DEFAULT_COLOR),
            order=place if body.order is None else body.order,
        )
        for place, (body, option, key) in enumerate(zip(bodies, existing, keys, strict=True))
    )


class OptionGrowth:
    """A list of options to which values add names, up to the limit."""

    def __init__(self, options: Sequence[Option], make_id: MakeId) -> None:
        self.options = list(options)
        self._make_id = make_id
        self._keys = {option.key for option in options}
        self._names = {option.name.strip().casefold() for option in options}

    def add(self, name: str) -> None:
        """Add an option of this name, unless there is one or the list is full."""
        known = name.casefold() in self._names
        if known or len(name) > shapes.MAX_OPTION_NAME or len(self.options) >= shapes.MAX_OPTIONS:
            return
        option = Option(
            id=str(self._make_id()),
            key=first_free(slug(name, "option"), self._keys),
            name=name,
            color=DEFAULT_COLOR,
            order=1 + max((option.order for option in self.options), default=-1),
        )
        self.options.append(option)
        self._keys.add(option.key)
        self._names.add(name.casefold())


def _existing_option(
    options: Sequence[Option], body: shapes.ChangeOption, path: str, problems: list[Detail]
) -> Option | None:
    """The existing option that a body names; its key stays, because records store it."""
    if body.id is None:
        return next((option for option in options if option.key == body.key), None)
    option = next((option for option in options if option.id == body.id), None)
    if option is None:
        problems.append(Detail(f"{path}.id", "is not the id of an option of this field"))
    elif body.key not in {None, option.key}:
        problems.append(Detail(f"{path}.key", f"cannot change: records hold {option.key}"))
    return option


@dataclass(slots=True)
class PairedRelations:
    """Relations of one database, and their inverses by the database that gets them."""

    relations: list[FieldSpec] = field(default_factory=list)
    inverses: dict[Id, list[FieldSpec]] = field(default_factory=dict)
    problems: dict[str, Detail] = field(default_factory=dict)
    """Key of a relation → what is wrong with it."""


def pair_relations(
    database_id: Id,
    label: str,
    relations: Sequence[FieldSpec],
    targets: Mapping[Id, FieldSpecs],
    taken_keys: Mapping[Id, Collection[str]],
    make_id: MakeId,
) -> PairedRelations:
    """Give each relation of a database its inverse in the database it points into.

    `label` is that of the database, `targets` the fields of those it points into, `taken_keys`
    further keys that none of their new fields may have.
    """
    pairs = PairedRelations()
    for relation in relations:
        target_id = relation.target_id
        if relation.settings["symmetric"]:
            if target_id != database_id:
                message = "can be set only for a relation of a database to itself"
                pairs.problems[relation.key] = Detail("settings.symmetric", message)
            pairs.relations.append(_with_inverse(relation, relation.id))
            continue
        target_fields = targets[target_id]
        inverses = pairs.inverses.setdefault(target_id, [])
        if len(target_fields) + len(inverses) >= shapes.MAX_FIELDS:
            message = f"is a database that already has {shapes.MAX_FIELDS} fields"
            pairs.problems[relation.key] = Detail("settings.databaseId", message)
        keys = {*target_fields, *taken_keys.get(target_id, ()), *(spec.key for spec in inverses)}
        last = max((spec.position for spec in (*target_fields.values(), *inverses)), default=-1.0)
        inverse = _inverse(relation, database_id, label, keys, make_id())
        inverses.append(replace(inverse, position=last + 1))
        pairs.relations.append(_with_inverse(relation, inverse.id))
    return pairs


def _inverse(
    relation: FieldSpec, database_id: Id, label: str, taken_keys: Collection[str], inverse_id: Id
) -> FieldSpec:
    shown = relation.settings.get("inverseLabel") or label
    return FieldSpec(
        id=inverse_id,
        key=first_free(slug(shown, "field"), taken_keys),
        label=shown,
        kind=FieldKind.RELATION,
        settings={
            "databaseId": str(database_id),
            "cardinality": "many",
            "symmetric": False,
            "onDelete": "unlink",
            "inverseFieldId": str(relation.id),
        },
    )


def _with_inverse(relation: FieldSpec, inverse_id: Id) -> FieldSpec:
    settings = {**relation.settings, "inverseFieldId": str(inverse_id)}
    settings.pop("inverseLabel", None)
    return replace(relation, settings=settings)


RECORD_FACTS = frozenset({"id", "title", "databaseId"})


def button_problems(spec: FieldSpec, fields: FieldSpecs, hints: FieldHints) -> list[Detail]:
    """The problems of a button's bindings; `fields` are the fields of its database."""
    if spec.kind is not FieldKind.BUTTON:
        return []
    found = (
        (name, _problem(binding["type"], binding["value"], fields, hints))
        for name, binding in spec.settings["bindings"].items()
    )
    return [
        Detail(f"settings.bindings.{name}.value", problem) for name, problem in found if problem
    ]


def _problem(kind: str, value: object, fields: FieldSpecs, hints: FieldHints) -> str | None:
    match kind:
        case "field":
            if not isinstance(value, str):
                return no_field(value, fields)
            return None if value in fields else hints.no_field(value)
        case "record":
            known = isinstance(value, str) and value in RECORD_FACTS
            return None if known else f"must be one of: {', '.join(sorted(RECORD_FACTS))}"
        case "expression":
            return _expression_problem(value)
        case _:
            return None


def _expression_problem(value: object) -> str | None:
    if not isinstance(value, str):
        return "must be a CEL expression"
    try:
        compile_expression(value)
    except ExpressionError as problem:
        return problem.message
    if "trigger" in names(value):
        return (
            "reads trigger, which a button does not have: it reads record.<key>, and the action "
            "reads as trigger.<name> what these bindings pass"
        )
    return None
