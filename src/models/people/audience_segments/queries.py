"""Reading segments, and judging in SQL who belongs to them."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ARRAY,
    Boolean,
    ColumnElement,
    Numeric,
    Select,
    Text,
    Uuid,
    and_,
    any_,
    case,
    cast,
    false,
    func,
    literal,
    not_,
    or_,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import JSONB

from models.core.base import Id, JsonObject
from models.core.filters.conditions import Anchor, Condition, Empty, Has, In, Range, Substring
from models.core.filters.forms import ValueForm
from models.core.filters.grammar import AllOf, AnyOf, Not
from models.core.pagination import PageRequest
from models.people.audience_segments.rules import BUILT_IN, Fact, FactLeaf, SegmentRule, read_rule
from models.people.audience_segments.shapes import AudienceSegmentBody, AudienceSegmentList
from models.people.audience_segments.tables import AudienceSegment, audience_segment
from models.people.request_logs.tables import request_log
from models.people.users.tables import app_user
from models.people.workspaces.tables import workspace, workspace_member
from runtime.database import UnitOfWork

MAX_SEGMENTS = 200
"""Segments of a platform's own (promise I12)."""

_segment = audience_segment.c
_members = workspace_member.alias("members")

_FACTS: Mapping[Fact, ColumnElement[Any]] = {
    Fact.USER_ID: cast(app_user.c.id, Text),
    Fact.USER_EMAIL: app_user.c.email,
    Fact.USER_CREATED_AT: app_user.c.created_at,
    Fact.USER_PLATFORM_ADMIN: app_user.c.platform_admin,
    Fact.WORKSPACE_ID: cast(workspace.c.id, Text),
    Fact.WORKSPACE_CREATED_AT: workspace.c.created_at,
    Fact.WORKSPACE_LAST_ACTIVE_AT: select(func.max(request_log.c.created_at))
    .where(request_log.c.workspace_id == workspace.c.id)
    .correlate(workspace)
    .scalar_subquery(),
    Fact.WORKSPACE_MEMBER_COUNT: select(cast(func.count(), Numeric))
    .select_from(_members)
    .where(_members.c.workspace_id == workspace.c.id)
    .correlate(workspace)
    .scalar_subquery(),
    Fact.WORKSPACE_ROLE: workspace_member.c.role,
}


async def list_segments(work: UnitOfWork, page: PageRequest) -> AudienceSegmentList:
    """The segments that all platforms have, then the platform's own by key."""
    rows = await work.rows(select(audience_segment).limit(MAX_SEGMENTS), of=AudienceSegment)
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
    return AudienceSegmentList(segments=shown.items, cursor=shown.cursor)


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
    return await work.scalar(select(_segment.key).where(_segment.key == key)) is not None


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
        rows = await work.rows(select(audience_segment).where(_segment.key.in_(others)))
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
) -> Select[Any]:
    """One row with a truth value for each rule."""
    document = literal(attributes, JSONB)
    columns: list[ColumnElement[Any]] = [
        condition_of(read_rule(rule, now), document).label(f"rule_{place}")
        for place, rule in enumerate(rules)
    ]
    member = and_(
        workspace_member.c.workspace_id == workspace.c.id,
        workspace_member.c.user_id == app_user.c.id,
    )
    return (
        select(*columns)
        .select_from(app_user)
        .outerjoin(workspace, workspace.c.id == cast(workspace_id, Uuid))
        .outerjoin(workspace_member, member)
        .where(app_user.c.id == user_id)
    )


def condition_of(rule: SegmentRule, document: ColumnElement[Any]) -> ColumnElement[bool]:
    """The meaning of a rule in SQL: true or false for every caller, never NULL."""
    match rule:
        case FactLeaf():
            value = _value_of(rule, document)
            return func.coalesce(_meets(value, rule.form, rule.condition), False)
        case Not(part):
            return not_(condition_of(part, document))
        case AllOf(parts):
            return and_(true(), *(condition_of(part, document) for part in parts))
        case AnyOf(parts):
            return or_(false(), *(condition_of(part, document) for part in parts))


def _value_of(leaf: FactLeaf, document: ColumnElement[Any]) -> ColumnElement[Any]:
    """The value of a fact; NULL for an attribute that was not told, or is of another form."""
    if leaf.fact is not None:
        return _FACTS[leaf.fact]
    value = document.op("->")(leaf.attribute)
    words = document.op("->>")(leaf.attribute)
    kind, sql_type = {
        ValueForm.NUMBER: ("number", Numeric),
        ValueForm.BOOLEAN: ("boolean", Boolean),
    }.get(leaf.form, ("string", Text))
    return case((func.jsonb_typeof(value) == kind, cast(words, sql_type)))


def _meets(value: ColumnElement[Any], form: ValueForm, condition: Condition) -> ColumnElement[Any]:
    match condition:
        case Empty():
            nothing: ColumnElement[Any] = value.is_(None)
            texts = form in {ValueForm.TEXT, ValueForm.OPTION}
            return or_(nothing, value == "") if texts else nothing
        case In(members):
            return value == any_(literal(list(members), ARRAY(value.type)))
        case Range(low, high, with_low, with_high):
            lowest = true() if low is None else value >= low if with_low else value > low
            highest = true() if high is None else value <= high if with_high else value < high
            return and_(lowest, highest)
        case Substring(text, anchor):
            if anchor is Anchor.ANYWHERE:
                return value.icontains(text, autoescape=True)
            if anchor is Anchor.START:
                return value.istartswith(text, autoescape=True)
            return value.iendswith(text, autoescape=True)
        case Has():
            raise AssertionError("no fact holds several values")
