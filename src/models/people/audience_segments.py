"""Audience segments: filters over the facts of a caller, stored, and judged in SQL.

The rule of a segment is written in the one filter language (ADR 0023).

See interface.md#experiments.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, TypeAlias
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlmodel import Field as TableField
from sqlmodel import SQLModel

from models.core import values
from models.core.access.rules import Principal
from models.core.base import Id, Input, JsonObject, Label, Moment, Shape, example
from models.core.filters import grammar, operands
from models.core.keys import Key
from models.core.openapi import documented_as
from models.core.pagination import Listed, PageRequest
from models.core.repository import Bound
from models.people.request_logs import request_log
from models.people.users import app_user
from models.people.workspaces import workspace, workspace_member
from runtime.database import UnitOfWork
from runtime.errors import Detail, ValidationError
from runtime.postgresql.schema import Timestamp, table_of

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


FORMS: Mapping[Fact, grammar.ValueForm] = {
    Fact.USER_ID: grammar.ValueForm.TEXT,
    Fact.USER_EMAIL: grammar.ValueForm.TEXT,
    Fact.USER_CREATED_AT: grammar.ValueForm.MOMENT,
    Fact.USER_PLATFORM_ADMIN: grammar.ValueForm.BOOLEAN,
    Fact.WORKSPACE_ID: grammar.ValueForm.TEXT,
    Fact.WORKSPACE_CREATED_AT: grammar.ValueForm.MOMENT,
    Fact.WORKSPACE_LAST_ACTIVE_AT: grammar.ValueForm.MOMENT,
    Fact.WORKSPACE_MEMBER_COUNT: grammar.ValueForm.NUMBER,
    Fact.WORKSPACE_ROLE: grammar.ValueForm.OPTION,
}


@dataclass(frozen=True, slots=True)
class FactLeaf:
    """A condition of one fact; `name` is a `Fact`, or the name of an attribute."""

    name: str
    form: grammar.ValueForm
    condition: operands.Condition

    @property
    def fact(self) -> Fact | None:
        """The fact, None for an attribute."""
        return None if self.name.startswith(ATTRIBUTES) else Fact(self.name)

    @property
    def attribute(self) -> str:
        """The name of the attribute."""
        return self.name.removeprefix(ATTRIBUTES)


SegmentRule: TypeAlias = grammar.Filter[FactLeaf]


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A segment that every platform has."""

    label: str
    description: str
    rule: JsonObject


def _within_days(fact: Fact, days: int) -> JsonObject:
    span = {"unit": "day", "count": days, "direction": "past"}
    return {"field": fact.value, "op": "within", "value": span}


def _attribute(name: str, op: grammar.Op, value: object) -> JsonObject:
    return {"field": f"{ATTRIBUTES}{name}", "op": op.value, "value": value}


EVERYBODY = "all"

BUILT_IN: Mapping[str, BuiltIn] = {
    EVERYBODY: BuiltIn("Everyone", "All callers.", {"and": []}),
    "internal": BuiltIn(
        "Internal",
        "Platform administrators.",
        {"field": Fact.USER_PLATFORM_ADMIN.value, "op": "eq", "value": True},
    ),
    "new_workspaces_30d": BuiltIn(
        "New workspaces",
        "Workspaces created in the last 30 days.",
        _within_days(Fact.WORKSPACE_CREATED_AT, 30),
    ),
    "active_7d": BuiltIn(
        "Active workspaces",
        "Workspaces with API calls in the last 7 days.",
        _within_days(Fact.WORKSPACE_LAST_ACTIVE_AT, 7),
    ),
    "self_hosted": BuiltIn(
        "Self-hosted",
        "Callers whose app sends selfHosted.",
        _attribute("selfHosted", grammar.Op.EQ, True),  # the operand of a rule
    ),
    "mobile_users": BuiltIn(
        "Mobile users",
        "Callers whose app sends the platform ios or android.",
        _attribute("platform", grammar.Op.IN, ["ios", "android"]),
    ),
    "beta_opt_in": BuiltIn(
        "Beta",
        "Callers whose app sends betaOptIn.",
        _attribute("betaOptIn", grammar.Op.EQ, True),  # the operand of a rule
    ),
}


def read_rule(raw: object, now: datetime) -> SegmentRule:
    """The rule a client described. Raises ValidationError at the places that are wrong."""
    try:
        return grammar.read_tree(raw, lambda leaf, path: _read_leaf(leaf, path, now))
    except grammar.FilterError as error:
        details = [
            Detail(path.replace("filter", "rule", 1), message) for path, message in error.problems
        ]
        raise ValidationError(
            "; ".join(f"{detail.path}: {detail.message}" for detail in details), details
        ) from error


def _read_leaf(raw: grammar.RawLeaf, path: str, now: datetime) -> SegmentRule:
    name, operand = _name(raw["field"], f"{path}.field"), raw.get("value")
    form = FORMS[Fact(name)] if name in set(Fact) else _form_of(operand)
    usable = grammar.OPERATORS[form]
    op = raw.get("op")
    if not isinstance(op, str) or op not in usable:
        raise grammar.FilterError(
            (f"{path}.op", f"must be an operator of this fact: {', '.join(usable)}")
        )
    zone = raw.get("timezone")
    if zone is not None and not (isinstance(zone, str) and values.is_timezone(zone)):
        raise grammar.FilterError((f"{path}.timezone", "must be an IANA time zone"))
    here = ZoneInfo(zone or "UTC")
    try:
        return grammar.positive_leaf(
            grammar.Op(op), lambda one: _leaf(name, form, one, operand, now, here)
        )
    except values.InvalidValueError as problem:
        raise grammar.FilterError((f"{path}.value", str(problem))) from problem


def _leaf(
    name: str,
    form: grammar.ValueForm,
    op: grammar.Op,
    operand: object,
    now: datetime,
    here: ZoneInfo,
) -> FactLeaf:
    if isinstance(operand, list) and len(operand) > _MAX_OPERANDS:
        raise values.InvalidValueError(f"must be a list of at most {_MAX_OPERANDS} values")
    readers = {grammar.ValueForm.NUMBER: values.number, grammar.ValueForm.BOOLEAN: _truth}
    return FactLeaf(
        name,
        form,
        operands.read_condition(op, form, readers.get(form, values.text), operand, now, here),
    )


def _name(name: object, path: str) -> str:
    if isinstance(name, str):
        if name in set(Fact):
            return name
        attribute = name.removeprefix(ATTRIBUTES)
        if attribute != name and attribute.isidentifier() and len(attribute) <= LONGEST_ATTRIBUTE:
            return name
    known = ", ".join(Fact)
    raise grammar.FilterError((path, f"must be {ATTRIBUTES}<name>, or one of: {known}"))


def _form_of(operand: object) -> grammar.ValueForm:
    """An attribute has the form of what it is compared with."""
    sample = operand[0] if isinstance(operand, list) and operand else operand
    if isinstance(sample, bool):
        return grammar.ValueForm.BOOLEAN
    return grammar.ValueForm.NUMBER if isinstance(sample, int | float) else grammar.ValueForm.TEXT


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise values.InvalidValueError("must be true or false")
    return value


class AudienceSegment(SQLModel, table=True):
    """A segment of the platform's own; `rule` is a filter over facts of a caller."""

    __tablename__ = "audience_segment"
    __table_args__ = (sa.ForeignKeyConstraint(["created_by_user_id"], ["app_user.id"]),)

    key: str = TableField(primary_key=True)
    label: str
    description: str | None = None
    rule: dict[str, Any] = TableField(sa_type=JSONB)
    created_by_user_id: Id
    created_at: datetime = TableField(sa_type=Timestamp)


audience_segment = table_of(AudienceSegment)


class AudienceSegmentBody(Shape):
    """A segment for flags and experiments; `builtIn` ones exist on every platform."""

    key: str
    label: str
    description: str | None
    built_in: bool
    rule: Annotated[JsonObject, documented_as("Filter")]
    created_at: Moment | None


class AudienceSegmentList(Listed):
    segments: list[AudienceSegmentBody]


class CreateAudienceSegment(Input):
    """A custom segment.

    `rule` is a filter over `user.…`, `workspace.…` and `attributes.…`, which the app sends.
    """

    model_config = example(
        {
            "key": "large_workspaces",
            "label": "Large workspaces",
            "rule": {"field": "workspace.memberCount", "op": "gte", "value": 50},
        }
    )

    key: Key
    label: Label
    description: Annotated[str, Field(max_length=2_000)] | None = None
    rule: Annotated[dict[str, Any], documented_as("Filter")]


SEGMENTS = Bound(audience_segment, 200, "segments", by=())
"""Segments of a platform's own."""

_segment = audience_segment.c
_members = workspace_member.alias("members")

_FACTS: Mapping[Fact, sa.ColumnElement[Any]] = {
    Fact.USER_ID: sa.cast(app_user.c.id, sa.Text),
    Fact.USER_EMAIL: app_user.c.email,
    Fact.USER_CREATED_AT: app_user.c.created_at,
    Fact.USER_PLATFORM_ADMIN: app_user.c.platform_admin,
    Fact.WORKSPACE_ID: sa.cast(workspace.c.id, sa.Text),
    Fact.WORKSPACE_CREATED_AT: workspace.c.created_at,
    Fact.WORKSPACE_LAST_ACTIVE_AT: sa.select(sa.func.max(request_log.c.created_at))
    .where(request_log.c.workspace_id == workspace.c.id)
    .correlate(workspace)
    .scalar_subquery(),
    Fact.WORKSPACE_MEMBER_COUNT: sa.select(sa.cast(sa.func.count(), sa.Numeric))
    .select_from(_members)
    .where(_members.c.workspace_id == workspace.c.id)
    .correlate(workspace)
    .scalar_subquery(),
    Fact.WORKSPACE_ROLE: workspace_member.c.role,
}


async def list_segments(work: UnitOfWork, page: PageRequest) -> AudienceSegmentList:
    """The segments that all platforms have, then the platform's own by key."""
    rows = await work.rows(sa.select(audience_segment).limit(SEGMENTS.most), of=AudienceSegment)
    own = sorted((segment_body(row) for row in rows), key=lambda segment: segment.key)
    built_in = [
        AudienceSegmentBody(
            key=key,
            label=segment.label,
            description=segment.description,
            built_in=True,
            rule=segment.rule,
            created_at=None,
        )
        for key, segment in BUILT_IN.items()
    ]
    order = [*BUILT_IN]

    def position(segment: AudienceSegmentBody) -> tuple[Any, ...]:
        key = segment.key
        return (0, order.index(key)) if segment.built_in else (1, key)

    left = [
        segment
        for segment in (*built_in, *own)
        if page.after is None or position(segment) > page.after
    ]
    shown = page.of(left, position)
    return AudienceSegmentList.of(shown)


def segment_body(row: AudienceSegment) -> AudienceSegmentBody:
    """A segment of the platform's own as the wire shows it."""
    return AudienceSegmentBody(
        key=row.key,
        label=row.label,
        description=row.description,
        built_in=False,
        rule=row.rule,
        created_at=row.created_at,
    )


async def is_segment(work: UnitOfWork, key: str) -> bool:
    """True when there is a segment of this key."""
    if key in BUILT_IN:
        return True
    return await work.scalar(sa.select(_segment.key).where(_segment.key == key)) is not None


async def segments_of(
    work: UnitOfWork,
    keys: Collection[str],
    *,
    user_id: Id,
    workspace_id: Id | None,
    attributes: JsonObject,
) -> frozenset[str]:
    """The segments among these that a caller belongs to, asking about a workspace or about none."""
    rules = {key: BUILT_IN[key].rule for key in keys if key in BUILT_IN}
    others = sorted(set(keys) - rules.keys())
    if others:
        rows = await work.rows(sa.select(audience_segment).where(_segment.key.in_(others)))
        rules |= {row.key: row.rule for row in rows}
    if not rules:
        return frozenset()
    order = sorted(rules)
    found = await work.first(
        _judgement([rules[key] for key in order], user_id, workspace_id, attributes, work.now)
    )
    return frozenset(key for key, holds in zip(order, found or (), strict=False) if holds)


def _judgement(
    rules: list[JsonObject],
    user_id: Id,
    workspace_id: Id | None,
    attributes: JsonObject,
    now: datetime,
) -> sa.Select[Any]:
    """One row with a truth value for each rule."""
    document = sa.literal(attributes, JSONB)
    columns: list[sa.ColumnElement[Any]] = [
        condition_of(read_rule(rule, now), document).label(f"rule_{place}")
        for place, rule in enumerate(rules)
    ]
    member = sa.and_(
        workspace_member.c.workspace_id == workspace.c.id,
        workspace_member.c.user_id == app_user.c.id,
    )
    return (
        sa.select(*columns)
        .select_from(app_user)
        .outerjoin(workspace, workspace.c.id == sa.cast(workspace_id, sa.Uuid))
        .outerjoin(workspace_member, member)
        .where(app_user.c.id == user_id)
    )


def condition_of(rule: SegmentRule, document: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    """The meaning of a rule in SQL: true or false for every caller, never NULL."""
    match rule:
        case FactLeaf():
            value = _value_of(rule, document)
            return sa.func.coalesce(_meets(value, rule.form, rule.condition), False)
        case grammar.Not(part):
            return sa.not_(condition_of(part, document))
        case grammar.AllOf(parts):
            return sa.and_(sa.true(), *(condition_of(part, document) for part in parts))
        case grammar.AnyOf(parts):
            return sa.or_(sa.false(), *(condition_of(part, document) for part in parts))


def _value_of(leaf: FactLeaf, document: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """The value of a fact; NULL for an attribute that was not told, or is of another form."""
    if leaf.fact is not None:
        return _FACTS[leaf.fact]
    value = document.op("->")(leaf.attribute)
    words = document.op("->>")(leaf.attribute)
    kind, sql_type = {
        grammar.ValueForm.NUMBER: ("number", sa.Numeric),
        grammar.ValueForm.BOOLEAN: ("boolean", sa.Boolean),
    }.get(leaf.form, ("string", sa.Text))
    return sa.case((sa.func.jsonb_typeof(value) == kind, sa.cast(words, sql_type)))


def _meets(
    value: sa.ColumnElement[Any], form: grammar.ValueForm, condition: operands.Condition
) -> sa.ColumnElement[Any]:
    match condition:
        case operands.Empty():
            nothing: sa.ColumnElement[Any] = value.is_(None)
            texts = form in {grammar.ValueForm.TEXT, grammar.ValueForm.OPTION}
            return sa.or_(nothing, value == "") if texts else nothing
        case operands.In(members):
            return value == sa.any_(sa.literal(list(members), sa.ARRAY(value.type)))
        case operands.Range(low, high, with_low, with_high):
            lowest = sa.true() if low is None else value >= low if with_low else value > low
            highest = sa.true() if high is None else value <= high if with_high else value < high
            return sa.and_(lowest, highest)
        case operands.Substring(text, anchor):
            return sa.or_(*(_has_text(value, one, anchor) for one in values.spellings(text)))
        case operands.Has():
            raise AssertionError("no fact holds several values")


def _has_text(
    value: sa.ColumnElement[Any], text: str, anchor: operands.Anchor
) -> sa.ColumnElement[bool]:
    if anchor is operands.Anchor.ANYWHERE:
        return value.icontains(text, autoescape=True)
    if anchor is operands.Anchor.START:
        return value.istartswith(text, autoescape=True)
    return value.iendswith(text, autoescape=True)


async def create_segment(
    work: UnitOfWork, principal: Principal, body: CreateAudienceSegment
) -> AudienceSegmentBody:
    """A segment of the platform's own.

    Raises ValidationError for a rule that cannot be read or a key that is in use, ConflictError
    when there are too many.
    """
    read_rule(body.rule, work.now)
    statement = (
        insert(audience_segment)
        .values(
            key=body.key,
            label=body.label,
            description=body.description,
            rule=body.rule,
            created_by_user_id=principal.user_id,
            created_at=work.now,
        )
        .on_conflict_do_nothing()
        .returning(audience_segment)
    )
    row = None
    if body.key not in BUILT_IN:
        async with SEGMENTS.place(work):
            row = await work.first(statement, of=AudienceSegment)
    if row is None:
        raise ValidationError.at("key", f"A segment with the key {body.key} already exists.")
    return segment_body(row)
