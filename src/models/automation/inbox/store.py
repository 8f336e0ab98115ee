"""Events and their outcomes for automations: their tables, and keeping them as they are judged.

No row has a foreign key: it outlives what it names, and never blocks what writes it. The outcomes
repeat the source and the moment of their event, so that one index finds the newest of an
automation.

The dispatcher copies its events inside the database, by `keeping`, so that no payload is read or
written once more. Judging an event again replaces the outcome of that automation: a debounced
event is judged when it comes, and again when its time is over.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa
from pydantic_core import to_json
from sqlalchemy.dialects.postgresql import JSONB, Insert
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlmodel import Field, SQLModel

from models.automation.inbox import rules
from models.core.base import Id
from models.core.purging import MAX_ROWS, Retention
from runtime.database import UnitOfWork, Work
from runtime.postgresql.schema import BELONGS_TO, Timestamp, one_of, table_of
from runtime.postgresql.statements import PreparedStatement


class InboxEvent(SQLModel, table=True):
    """An event that reached automations.

    `subject_id` is a database, form, data source or automation. `payload` is null when it was
    larger than is kept, `payload_bytes` is its size.
    """

    __tablename__ = "inbox_event"
    __table_args__ = (
        one_of("source", rules.EventSource),
        sa.Index("ix_inbox_event_workspace_id_received_at_id", "workspace_id", "received_at", "id"),
        sa.Index("ix_inbox_event_received_at", "received_at"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    source: str
    subject_id: Id
    payload: dict[str, Any] | None = Field(default=None, sa_type=JSONB(none_as_null=True))
    payload_bytes: int
    received_at: datetime = Field(sa_type=Timestamp)


class InboxOutcome(SQLModel, table=True):
    """The outcome of an event for one automation; a replay has a row of its own."""

    __tablename__ = "inbox_outcome"
    __table_args__ = (
        one_of("source", rules.EventSource),
        one_of("outcome", rules.EventOutcome),
        sa.Index(
            "ix_inbox_outcome_automation_id",
            *("workspace_id", "automation_id", "received_at", "event_id"),
        ),
        sa.Index("ix_inbox_outcome_outcome", "workspace_id", "outcome", "received_at", "event_id"),
        sa.Index("ix_inbox_outcome_event_id", "workspace_id", "event_id"),
        sa.Index("ix_inbox_outcome_received_at", "received_at"),
        {"info": {BELONGS_TO: {"automation": ("workspace_id", "automation_id")}}},
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    event_id: Id
    automation_id: Id
    source: str
    outcome: str
    run_id: Id | None = None
    detail: dict[str, Any] | None = Field(default=None, sa_type=JSONB(none_as_null=True))
    replay: bool = Field(default=False, sa_column_kwargs={"server_default": sa.text("false")})
    received_at: datetime = Field(sa_type=Timestamp)
    judged_at: datetime = Field(sa_type=Timestamp)


inbox_event = table_of(InboxEvent)
inbox_outcome = table_of(InboxOutcome)

_purge_outcomes = Retention(inbox_outcome, inbox_outcome.c.received_at)
_purge_events = Retention(inbox_event, inbox_event.c.received_at)

MAX_EVENTS = 100_000
"""Events that are kept of a workspace; the oldest go first."""
_EXAMINED = 200
"""Workspaces whose number of events one call compares with the bound."""


async def purge_inbox(work: UnitOfWork, before: datetime) -> int:
    """Remove events from before a moment, with their outcomes, and those over the bound."""
    return (
        await _purge_outcomes(work, before)
        or await _purge_events(work, before)
        or await _purge_overfull(work)
    )


async def _purge_overfull(work: UnitOfWork) -> int:
    """Remove the oldest events of workspaces that have more than `MAX_EVENTS`."""
    event = inbox_event.c
    full = await work.rows(
        sa.select(event.workspace_id, sa.func.count().label("events"))
        .group_by(event.workspace_id)
        .having(sa.func.count() > MAX_EVENTS)
        .order_by(sa.func.count().desc())
        .limit(_EXAMINED)
    )
    total = 0
    for row in full:
        newest = (
            sa.select(event.received_at, event.id)
            .where(event.workspace_id == row.workspace_id)
            .order_by(event.received_at.desc(), event.id.desc())
            .offset(MAX_EVENTS)
            .limit(1)
        )
        last = await work.first(newest, of=_Newest)
        if last is None:
            continue
        for table, event_id in (
            (inbox_outcome, inbox_outcome.c.event_id),
            (inbox_event, event.id),
        ):
            # Many may have come at one moment: their ids say which of them are the oldest.
            place = sa.tuple_(table.c.received_at, event_id)
            old = (
                sa.select(table.c.id)
                .where(
                    table.c.workspace_id == row.workspace_id,
                    place <= sa.tuple_(last.received_at, last.id),
                )
                .order_by(table.c.received_at, event_id)
                .limit(MAX_ROWS)
            )
            removed = await work.execute(sa.delete(table).where(table.c.id.in_(old)))
            total += removed.rowcount
        if total >= MAX_ROWS:
            break
    return total


class _Newest(Protocol):
    """The place of the newest event over the bound."""

    received_at: datetime
    id: Id


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement on an event for one automation."""

    event_id: Id
    automation_id: Id
    judgement: rules.Judgement


_NOW = sa.bindparam("now", type_=Timestamp)
_VERDICTS = (
    sa.func.jsonb_to_recordset(sa.cast(sa.bindparam("verdicts", type_=sa.Text), JSONB))
    .table_valued(
        *(
            sa.column(name, inbox_outcome.c[name].type)
            for name in ("id", "event_id", "automation_id", "outcome", "run_id", "detail", "replay")
        )
    )
    .render_derived(name="verdict", with_types=True)
)
_EVENTS = (
    sa.func.jsonb_to_recordset(sa.cast(sa.bindparam("events", type_=sa.Text), JSONB))
    .table_valued(
        *(
            sa.column(name, inbox_event.c[name].type)
            for name in ("id", "workspace_id", "source", "subject_id", "payload", "payload_bytes")
        )
    )
    .render_derived(name="received", with_types=True)
)


def keeping(events: sa.CTE, verdicts: sa.FromClause = _VERDICTS) -> Insert:
    """The statement that keeps events and verdicts; `events` has the columns of `inbox_event`.

    Its parameters are `now`, and all of `events` and `verdicts`: by default `verdicts`.
    """
    values = {
        "id": verdicts.c.id,
        "workspace_id": events.c.workspace_id,
        "event_id": events.c.id,
        "automation_id": verdicts.c.automation_id,
        "source": events.c.source,
        "outcome": verdicts.c.outcome,
        "run_id": verdicts.c.run_id,
        "detail": sa.func.nullif(verdicts.c.detail, sa.cast(sa.literal("null", sa.Text), JSONB)),
        "replay": verdicts.c.replay,
        "received_at": events.c.received_at,
        "judged_at": _NOW,
    }
    events_kept = upsert(inbox_event).from_select(
        [one.name for one in inbox_event.columns],
        sa.select(*(events.c[one.name] for one in inbox_event.columns)),
    )
    new = upsert(inbox_outcome).from_select(
        list(values),
        sa.select(*values.values()).select_from(
            events.join(verdicts, verdicts.c.event_id == events.c.id)
        ),
    )
    judged = ("outcome", "run_id", "detail", "judged_at")
    statement: Insert = new.on_conflict_do_update(
        index_elements=["id"], set_={name: new.excluded[name] for name in judged}
    ).add_cte(events_kept.on_conflict_do_nothing(index_elements=["id"]).cte("kept"))
    return statement


_received = sa.select(*_EVENTS.c, _NOW.label("received_at"))
_KEEP = PreparedStatement(keeping(_received.cte("event")))


def keeping_start(start: sa.CTE) -> PreparedStatement[Any]:
    """The statement that keeps an event of which there is a run; its row has the outcome.

    `start` has the `id` of the run, and a `subject_kind` where a pause holds it. Where it is
    empty, nothing is kept. The parameters are `start_values`, and all of `start`.
    """
    event = _received.select_from(start).cte("event")
    outcome = sa.case(
        (start.c.subject_kind.is_not(None), rules.EventOutcome.PAUSED.value),
        else_=rules.EventOutcome.RUN.value,
    )
    paused = sa.func.jsonb_build_object(sa.literal("subject", sa.Text), start.c.subject_kind)
    detail = sa.case((start.c.subject_kind.is_not(None), paused))
    verdict = sa.select(
        sa.bindparam("outcome_id", type_=inbox_outcome.c.id.type).label("id"),
        event.c.id.label("event_id"),
        sa.bindparam("automation_id", type_=inbox_outcome.c.automation_id.type).label(
            "automation_id"
        ),
        outcome.label("outcome"),
        start.c.id.label("run_id"),
        detail.label("detail"),
        sa.false().label("replay"),
    ).select_from(start.join(event, sa.true()))
    statement = keeping(event, verdict.cte("verdict"))
    return PreparedStatement(statement.returning(inbox_outcome.c.outcome))


def start_values(work: Work, event: rules.Received, automation_id: Id) -> dict[str, Any]:
    """The parameters of `keeping_start` beside all of its start."""
    own = {"outcome_id": rules.outcome_id(event.id, automation_id), "automation_id": automation_id}
    return {**_event_values(work, event), **own}


async def keep(work: Work, event: rules.Received, judgements: Mapping[Id, rules.Judgement]) -> None:
    """Keep an event with its outcomes, by the ids of their automations."""
    verdicts = [Verdict(event.id, one, judgement) for one, judgement in judgements.items()]
    values = _event_values(work, event)
    await _KEEP.execute(work, {**values, "verdicts": verdict_rows(verdicts)})


def _event_values(work: Work, event: rules.Received) -> dict[str, Any]:
    payload = None if event.payload is None else to_json(event.payload)
    fits = payload is not None and len(payload) <= rules.MAX_PAYLOAD
    row = {
        "id": event.id,
        "workspace_id": event.workspace_id,
        "source": event.source,
        "subject_id": event.subject_id,
        "payload": event.payload if fits else None,
        "payload_bytes": 0 if payload is None else len(payload),
    }
    return {"now": work.now, "events": to_json([row]).decode()}


def verdict_rows(verdicts: Collection[Verdict]) -> str:
    """The `verdicts` of a statement that keeps them."""
    rows = [
        {
            "id": rules.outcome_id(verdict.event_id, verdict.automation_id),
            "event_id": verdict.event_id,
            "automation_id": verdict.automation_id,
            "outcome": verdict.judgement.outcome,
            "run_id": verdict.judgement.run_id,
            "detail": verdict.judgement.detail,
            "replay": False,
        }
        for verdict in verdicts
    ]
    return to_json(rows).decode()


_judged = inbox_outcome.c
_JUDGE_AGAIN = PreparedStatement(
    inbox_outcome.update()
    .where(_judged.id == sa.bindparam("outcome_id", type_=_judged.id.type))
    .values(
        outcome=sa.bindparam("outcome", type_=sa.Text),
        run_id=sa.bindparam("run_id", type_=_judged.run_id.type),
        detail=sa.bindparam("detail", type_=JSONB(none_as_null=True)),
        judged_at=_NOW,
    )
)


async def judge_again(work: UnitOfWork, verdict: Verdict) -> None:
    """Replace the outcome of an event that was kept before."""
    judgement = verdict.judgement
    await _JUDGE_AGAIN.execute(
        work,
        {
            "outcome_id": rules.outcome_id(verdict.event_id, verdict.automation_id),
            "outcome": judgement.outcome.value,
            "run_id": judgement.run_id,
            "detail": judgement.detail,
            "now": work.now,
        },
    )


_REPLAYED = PreparedStatement(
    sa.insert(inbox_outcome).values(
        **{
            name: sa.bindparam(name, type_=inbox_outcome.c[name].type)
            for name, _ in inbox_outcome.columns.items()
        }
    )
)


async def keep_replay(
    work: UnitOfWork,
    replay_id: Id,
    event: rules.KeptEvent,
    automation_id: Id,
    judgement: rules.Judgement,
) -> None:
    """Keep what became of the replay of an event."""
    await _REPLAYED.execute(
        work,
        {
            "id": replay_id,
            "workspace_id": event.workspace_id,
            "event_id": event.id,
            "automation_id": automation_id,
            "source": event.source,
            "outcome": judgement.outcome.value,
            "run_id": judgement.run_id,
            "detail": judgement.detail,
            "replay": True,
            "received_at": event.received_at,
            "judged_at": work.now,
        },
    )
