"""Segments as filters over the facts of a caller (decisions C13). Pure.

The rules are written in the one filter language (ADR 0023); `queries` says what they mean in SQL.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias
from zoneinfo import ZoneInfo

from models.core import values
from models.core.base import JsonObject
from models.core.filters.conditions import Condition
from models.core.filters.forms import ValueForm
from models.core.filters.grammar import Filter, FilterError, RawLeaf, positive_leaf, read_tree
from models.core.filters.operands import read_condition
from models.core.filters.operators import OPERATORS, Op
from models.core.schedules.timezones import is_timezone
from models.core.values import InvalidValueError
from runtime.errors import Detail, ValidationError

ATTRIBUTES = "attributes."
"""Prefix of the name of a fact that the application tells when it asks for an assignment."""
LONGEST_ATTRIBUTE = 64
_MAX_OPERANDS = 500


class Fact(StrEnum):
    """A fact that the platform itself knows of a caller or of the workspace that is asked about."""

    USER_ID = "user.id"
    USER_EMAIL = "user.email"
    USER_CREATED_AT = "user.createdAt"
    USER_PLATFORM_ADMIN = "user.platformAdmin"
    WORKSPACE_ID = "workspace.id"
    WORKSPACE_CREATED_AT = "workspace.createdAt"
    WORKSPACE_LAST_ACTIVE_AT = "workspace.lastActiveAt"
    WORKSPACE_MEMBER_COUNT = "workspace.memberCount"
    WORKSPACE_ROLE = "workspace.role"


FORMS: Mapping[Fact, ValueForm] = {
    Fact.USER_ID: ValueForm.TEXT,
    Fact.USER_EMAIL: ValueForm.TEXT,
    Fact.USER_CREATED_AT: ValueForm.MOMENT,
    Fact.USER_PLATFORM_ADMIN: ValueForm.BOOLEAN,
    Fact.WORKSPACE_ID: ValueForm.TEXT,
    Fact.WORKSPACE_CREATED_AT: ValueForm.MOMENT,
    Fact.WORKSPACE_LAST_ACTIVE_AT: ValueForm.MOMENT,
    Fact.WORKSPACE_MEMBER_COUNT: ValueForm.NUMBER,
    Fact.WORKSPACE_ROLE: ValueForm.OPTION,
}


@dataclass(frozen=True, slots=True)
class FactLeaf:
    """A condition of one fact; `name` is a `Fact`, or the name of an attribute."""

    name: str
    form: ValueForm
    condition: Condition

    @property
    def fact(self) -> Fact | None:
        """The fact, None for an attribute."""
        return None if self.name.startswith(ATTRIBUTES) else Fact(self.name)

    @property
    def attribute(self) -> str:
        """The name of the attribute."""
        return self.name.removeprefix(ATTRIBUTES)


SegmentRule: TypeAlias = Filter[FactLeaf]


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A segment that every platform has."""

    label: str
    description: str
    rule: JsonObject


def _within_days(fact: Fact, days: int) -> JsonObject:
    span = {"unit": "day", "count": days, "direction": "past"}
    return {"field": fact.value, "op": "within", "value": span}


def _attribute(name: str, op: Op, value: object) -> JsonObject:
    return {"field": f"{ATTRIBUTES}{name}", "op": op.value, "value": value}


EVERYBODY = "all"

BUILT_IN: Mapping[str, BuiltIn] = {
    EVERYBODY: BuiltIn("Everybody", "Every caller.", {"and": []}),
    "internal": BuiltIn(
        "Internal",
        "Platform administrators.",
        {"field": Fact.USER_PLATFORM_ADMIN.value, "op": "eq", "value": True},
    ),
    "new_workspaces_30d": BuiltIn(
        "New workspaces",
        "Workspaces that were created in the last 30 days.",
        _within_days(Fact.WORKSPACE_CREATED_AT, 30),
    ),
    "active_7d": BuiltIn(
        "Active workspaces",
        "Workspaces with a call in the last 7 days.",
        _within_days(Fact.WORKSPACE_LAST_ACTIVE_AT, 7),
    ),
    "self_hosted": BuiltIn(
        "Self-hosted",
        "Callers whose application says `selfHosted`.",
        _attribute("selfHosted", Op.EQ, True),  # the operand of a rule
    ),
    "mobile_users": BuiltIn(
        "Mobile users",
        "Callers whose application says that its `platform` is ios or android.",
        _attribute("platform", Op.IN, ["ios", "android"]),
    ),
    "beta_opt_in": BuiltIn(
        "Beta",
        "Callers whose application says `betaOptIn`.",
        _attribute("betaOptIn", Op.EQ, True),  # the operand of a rule
    ),
}


def read_rule(raw: object, now: datetime) -> SegmentRule:
    """The rule a client described. Raises ValidationError at the places that are wrong."""
    try:
        return read_tree(raw, lambda leaf, path: _read_leaf(leaf, path, now))
    except FilterError as error:
        details = [
            Detail(path.replace("filter", "rule", 1), message) for path, message in error.problems
        ]
        raise ValidationError(
            "; ".join(f"{detail.path}: {detail.message}" for detail in details), details
        ) from error


def _read_leaf(raw: RawLeaf, path: str, now: datetime) -> SegmentRule:
    name, operand = _name(raw["field"], f"{path}.field"), raw.get("value")
    form = FORMS[Fact(name)] if name in set(Fact) else _form_of(operand)
    usable = OPERATORS[form]
    op = raw.get("op")
    if not isinstance(op, str) or op not in usable:
        raise FilterError((f"{path}.op", f"must be an operator of this fact: {', '.join(usable)}"))
    zone = raw.get("timezone")
    if zone is not None and not (isinstance(zone, str) and is_timezone(zone)):
        raise FilterError((f"{path}.timezone", "must be an IANA time zone"))
    here = ZoneInfo(zone or "UTC")
    try:
        return positive_leaf(Op(op), lambda one: _leaf(name, form, one, operand, now, here))
    except InvalidValueError as problem:
        raise FilterError((f"{path}.value", str(problem))) from problem


def _leaf(
    name: str, form: ValueForm, op: Op, operand: object, now: datetime, here: ZoneInfo
) -> FactLeaf:
    if isinstance(operand, list) and len(operand) > _MAX_OPERANDS:
        raise InvalidValueError(f"must be a list of at most {_MAX_OPERANDS} values")
    readers = {ValueForm.NUMBER: values.number, ValueForm.BOOLEAN: _truth}
    return FactLeaf(
        name, form, read_condition(op, form, readers.get(form, values.text), operand, now, here)
    )


def _name(name: object, path: str) -> str:
    if isinstance(name, str):
        if name in set(Fact):
            return name
        attribute = name.removeprefix(ATTRIBUTES)
        if attribute != name and attribute.isidentifier() and len(attribute) <= LONGEST_ATTRIBUTE:
            return name
    known = ", ".join(Fact)
    raise FilterError((path, f"must be {ATTRIBUTES}<name>, or one of: {known}"))


def _form_of(operand: object) -> ValueForm:
    """An attribute has the form of what it is compared with."""
    sample = operand[0] if isinstance(operand, list) and operand else operand
    if isinstance(sample, bool):
        return ValueForm.BOOLEAN
    return ValueForm.NUMBER if isinstance(sample, int | float) else ValueForm.TEXT


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidValueError("must be true or false")
    return value
