"""The captured rows of a dry run, read as the changes that its caller can read.

Captured rows belong to one transaction, which is rolled back: no other ever sees them.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.automation.automations.queries import labels_of
from models.automation.triggers.dispatch import answer_events
from models.content.items.queries import seen_before_trash
from models.core.access.rules import MANAGERS, Actor, Principal, Role, Scope
from models.core.base import Id, JsonObject
from models.data.records.queries import RECORD
from models.messages.deliveries.rules import DeliveryChannel
from models.messages.webhook_endpoints.deliveries import has_endpoints, wanted_events
from models.workspace.changes import differences as change_differences
from models.workspace.changes import shapes
from models.workspace.changes.queries import dry_run_change
from runtime.crypto import fingerprint
from runtime.database import UnitOfWork
from runtime.errors import ConflictError
from runtime.postgresql.statements import PreparedStatement
from runtime.temporal.workflow_kinds import WorkflowKind

MOST_RESOURCES = 100
"""Resources that are listed; the others are counted."""
MOST_ROWS = 20_000
"""Captured rows that are read."""


class _Captured(Protocol):
    position: int
    source: str
    subject: str
    workspace_id: Id | None
    item_id: Id | None
    before: JsonObject | None
    after: JsonObject | None
    created: Sequence[Id] | None
    has_endpoints: bool


_change = dry_run_change.c
_captured = (
    sa.select(dry_run_change)
    .where(
        _change.transaction_id
        == sa.cast(sa.cast(sa.func.pg_current_xact_id_if_assigned(), sa.Text), sa.BigInteger),
        _change.position > sa.bindparam("after", type_=sa.BigInteger),
    )
    .order_by(_change.position)
    .limit(sa.bindparam("most", type_=sa.Integer))
    .cte("captured")
)
# Rows of few places: the item of each place is looked up once.
_placed = (
    sa.select(
        _captured.c.place,
        _captured.c.place_id,
        sa.func.item_of_place(_captured.c.place, _captured.c.place_id, type_=sa.Uuid).label(
            "item_id"
        ),
    )
    .group_by(_captured.c.place, _captured.c.place_id)
    .cte("placed")
)
_CAPTURED = PreparedStatement(
    sa.select(
        _captured.c.position,
        _captured.c.source,
        _captured.c.subject,
        _captured.c.workspace_id,
        _placed.c.item_id,
        _captured.c.before,
        _captured.c.after,
        _captured.c.created,
        has_endpoints("caller_workspace_id").label("has_endpoints"),
    )
    .select_from(_captured)
    .join(
        _placed,
        sa.and_(_placed.c.place == _captured.c.place, _placed.c.place_id == _captured.c.place_id),
        isouter=True,
    )
    .order_by(_captured.c.position),
    _Captured,
)


_UNREAD: JsonObject = {}
"""The values of a record that are not read yet."""
_shown = (*change_differences.REPORTED["record"].columns, change_differences.IN_TRASH)
_RECORDS = PreparedStatement(
    sa.select(
        RECORD.id,
        sa.func.jsonb_build_object(
            *chain.from_iterable((sa.text(f"'{name}'"), RECORD[name]) for name in _shown),
            type_=JSONB,
        ).label("content"),
    ).where(RECORD.id == sa.func.any(sa.bindparam("ids", type_=sa.ARRAY(sa.Uuid)))),
)


@dataclass(slots=True)
class _Written:
    """A row from before the first statement that wrote it to after the last."""

    source: str
    subject: str
    workspace_id: Id | None
    item_id: Id | None
    before: JsonObject | None
    after: JsonObject | None

    @property
    def values(self) -> JsonObject:
        """The values after the last statement, or before its deletion."""
        return self.after or self.before or {}


async def changes_of(
    work: UnitOfWork, caller: Principal, actor: Actor | None
) -> shapes.DryRunChanges:
    """The changes of the transaction so far, as far as the caller can read them.

    A caller who is in no workspace sees the workspaces that they enter. Events of the transaction
    are dispatched here, in place of the dispatcher: the runs that would start do start.
    """
    workspace_id = None if actor is None else actor.workspace_id
    captured = await _read_captured(work, workspace_id)
    rows = _folded(await _with_consequences(work, captured))
    if actor is None:
        entered = [row for row in rows if _is_entered(caller, row)]
        return _changes(list(_differences(caller, frozenset(Scope), entered)), rows)
    return await _changes_for(work, caller, actor, rows, _webhooks_are_called(captured))


@dataclass(frozen=True, slots=True)
class Trial:
    """All changes of a proposed request, and the changes that its author can read.

    `digest` is made of the rows that it would change, of the number of rows that it
    would add, and of the automations that it would start.
    """

    changes: shapes.DryRunChanges
    own_changes: shapes.DryRunChanges
    digest: str


class TooLargeToProposeError(ConflictError):
    """The request writes more rows than a proposal compares."""

    retryable = False
    advice = "Propose less in one request."

    def __init__(self) -> None:
        super().__init__(f"A proposed request can change at most {MOST_ROWS:,} rows.")


async def trial_of(work: UnitOfWork, caller: Principal, author: Actor) -> Trial:
    """The changes of the transaction so far, for its author and the managers.

    Raises TooLargeToProposeError.
    """
    captured = await _read_captured(work, author.workspace_id)
    direct = _folded(captured)
    if max(len(captured), len(direct)) >= MOST_ROWS:
        raise TooLargeToProposeError
    rows = _folded(await _with_consequences(work, captured))
    everything = replace(author, role=Role.OWNER, scopes=frozenset(Scope))
    calls = _webhooks_are_called(captured)
    changes = await _changes_for(work, caller, everything, rows, calls)
    own = await _changes_for(work, caller, author, rows, calls)
    return Trial(changes, own, _digest(direct, changes.automations))


_CONSEQUENT = frozenset(
    {"change_set", "debounced_change", "delivery", "job", "notification", "outbox", "trigger_event"}
)
"""Tables of what follows from a change: it may differ for other reasons."""


def _digest(rows: Iterable[_Written], automations: Iterable[shapes.StartedAutomation]) -> str:
    direct = [row for row in rows if row.source not in _CONSEQUENT]
    before = sorted([row.source, row.subject, row.before] for row in direct if row.before)
    added = sorted(Counter(row.source for row in direct if row.before is None).items())
    started = sorted([str(one.automation_id), one.runs, one.debounced] for one in automations)
    written = json.dumps([before, added, started], sort_keys=True, separators=(",", ":"))
    return fingerprint(written.encode()).hex()


async def _with_consequences(
    work: UnitOfWork, captured: Sequence[_Captured]
) -> Sequence[_Captured]:
    """The captured rows, with the rows of the events that are dispatched here."""
    events = [int(row.subject) for row in captured if row.source == "trigger_event" and row.after]
    if not events:
        return captured
    await answer_events(work, events)
    return [*captured, *await _read_captured(work, None, captured[-1].position)]


def _webhooks_are_called(captured: Sequence[_Captured]) -> bool:
    """False when the rows say that the workspace has no endpoint: most have none."""
    return not captured or captured[0].has_endpoints


async def _changes_for(
    work: UnitOfWork, caller: Principal, actor: Actor, rows: Sequence[_Written], calls: bool
) -> shapes.DryRunChanges:
    items = {row.item_id for row in rows if row.item_id is not None}
    open_items = await seen_before_trash(work, actor, items)
    readable = [row for row in rows if _is_visible(actor, open_items, row)]
    await _read_records(work, readable)
    webhooks = await _webhooks(work, actor) if calls else ()
    return _changes(
        list(_differences(caller, actor.scopes, readable)),
        rows,
        automations=await _automations(work, actor, readable),
        messages=[*_notifications(readable), *webhooks],
    )


async def _read_records(work: UnitOfWork, rows: Iterable[_Written]) -> None:
    """Give records their present values: only the former ones are captured.

    A new record differs in any case, so only the new records that may be listed are read.
    """
    unread = [row for row in rows if row.source == "record" and row.after == _UNREAD]
    new = islice((row for row in unread if row.before is None), MOST_RESOURCES)
    wanted = {row.subject: row for row in unread if row.before is not None}
    wanted |= {row.subject: row for row in new}
    if wanted:
        for written in await _RECORDS.rows(work, {"ids": [*wanted]}):
            wanted[str(written.id)].after = written.content


def _changes(
    differences: Sequence[tuple[_Written, change_differences.ChangeOperation]],
    rows: Iterable[_Written],
    automations: Sequence[shapes.StartedAutomation] = (),
    messages: Sequence[shapes.SentMessage] = (),
) -> shapes.DryRunChanges:
    return shapes.DryRunChanges(
        counts=_counts(differences),
        resources=[_resource(row) for row, _ in differences[:MOST_RESOURCES]],
        omitted=max(0, len(differences) - MOST_RESOURCES),
        automations=[*automations],
        messages=[*messages],
        work=_work(rows),
    )


async def _read_captured(
    work: UnitOfWork, workspace_id: Id | None, after: int = 0
) -> Sequence[_Captured]:
    parameters = {"after": after, "most": MOST_ROWS, "caller_workspace_id": workspace_id}
    return await _CAPTURED.rows(work, parameters)


def _folded(captured: Iterable[_Captured]) -> list[_Written]:
    """The rows in the order of their first change; a row that was created and deleted is none."""
    folded: dict[tuple[str, str], _Written] = {}
    for row in captured:
        if row.created is not None:
            for subject in map(str, row.created):
                place = row.workspace_id, row.item_id
                folded[row.source, subject] = _Written(row.source, subject, *place, None, _UNREAD)
            continue
        key = row.source, row.subject
        if key not in folded:
            folded[key] = _Written(*key, row.workspace_id, row.item_id, row.before, row.after)
        else:
            folded[key].after = row.after
            folded[key].item_id = folded[key].item_id or row.item_id
    return [row for row in folded.values() if row.before is not None or row.after is not None]


def _is_visible(actor: Actor, open_items: Set[Id], row: _Written) -> bool:
    if row.workspace_id not in {None, actor.workspace_id}:
        return False
    if row.source == "workspace" and row.subject != str(actor.workspace_id):
        return False
    if row.item_id is not None:
        return row.item_id in open_items
    reported = change_differences.REPORTED.get(row.source)
    return reported is None or not reported.placed or actor.role in MANAGERS


def _is_entered(caller: Principal, row: _Written) -> bool:
    """True for a workspace that the caller creates, and for their membership."""
    is_own = row.values.get("user_id") == str(caller.user_id)
    return row.before is None and (row.source == "workspace" or is_own)


def _differences(
    caller: Principal, scopes: Set[Scope], rows: Iterable[_Written]
) -> Iterator[tuple[_Written, change_differences.ChangeOperation]]:
    """The rows that the caller can read and of which something is shown, with their operations."""
    for row in rows:
        reported = change_differences.REPORTED.get(row.source)
        if reported is None or reported.scope not in scopes:
            continue
        owner = None if reported.owner is None else row.values.get(reported.owner)
        if owner not in {None, str(caller.user_id)}:
            continue
        operation = change_differences.operation_of(row.before, row.after)
        # Only the first rows are shown with their values; most of a large request are new ones.
        if (
            operation is not change_differences.ChangeOperation.UPDATED
            or _difference(row) is not None
        ):
            yield row, operation


def _difference(row: _Written) -> change_differences.Difference | None:
    return change_differences.difference(row.source, row.before, row.after)


def _resource(row: _Written) -> shapes.ChangedResource:
    change = _difference(row)
    assert change is not None, "it was compared"
    return shapes.ChangedResource(
        kind=row.source,
        id=row.subject,
        operation=change.operation,
        item_id=row.item_id,
        changed_keys=[*change.changed_keys],
        before=change.before,
        after=change.after,
    )


def _counts(
    differences: Iterable[tuple[_Written, change_differences.ChangeOperation]],
) -> list[shapes.ChangeCount]:
    numbers = Counter((row.source, operation) for row, operation in differences)
    return [
        shapes.ChangeCount(
            kind=kind, **{operation.value: numbers[kind, operation] for operation in _ALL}
        )
        for kind in dict.fromkeys(kind for kind, _ in numbers)
    ]


_ALL = list(change_differences.ChangeOperation)


async def _automations(
    work: UnitOfWork, actor: Actor, rows: Iterable[_Written]
) -> list[shapes.StartedAutomation]:
    if Scope.AUTOMATIONS_READ not in actor.scopes:
        return []
    runs: Counter[Id] = Counter()
    debounced: Counter[Id] = Counter()
    for row in rows:
        if row.source == "automation_run" and row.before is None:
            runs[Id(row.values["automation_id"])] += 1
        elif row.source == "debounced_change" and row.after is not None:
            debounced[Id(row.values["automation_id"])] += 1
    ids = dict.fromkeys((*runs, *debounced))
    labels = await labels_of(work, actor, ids) if ids else {}
    return [
        shapes.StartedAutomation(
            automation_id=id_, label=labels[id_], runs=runs[id_], debounced=debounced[id_]
        )
        for id_ in ids
        if id_ in labels
    ]


def _notifications(rows: Iterable[_Written]) -> Iterator[shapes.SentMessage]:
    """Notifications, and their deliveries to devices and mailboxes."""
    numbers: Counter[tuple[str, str | None, str | None]] = Counter()
    for row in rows:
        if row.before is not None:
            continue
        if row.source == "notification":
            numbers["notification", row.values["kind"], row.values["user_id"]] += 1
        elif row.source == "delivery":
            numbers[row.values["channel"], None, None] += 1
    for (channel, kind, user_id), count in numbers.items():
        yield shapes.SentMessage(
            channel=channel,
            kind=kind,
            user_id=None if user_id is None else Id(user_id),
            endpoint_id=None,
            count=count,
        )


async def _webhooks(work: UnitOfWork, actor: Actor) -> Sequence[shapes.SentMessage]:
    """The calls of webhook endpoints, which a worker makes from the log of the workspace."""
    if Scope.WEBHOOKS_READ not in actor.scopes:
        return []
    events = await wanted_events(work, actor.workspace_id)
    items = {event.item_id for event in events if event.item_id is not None}
    open_items = await seen_before_trash(work, actor, items)
    numbers: Counter[tuple[Id, str]] = Counter()
    for event in events:
        if event.item_id is None or event.item_id in open_items:
            numbers[event.endpoint_id, event.type] += event.number
    return [
        shapes.SentMessage(
            channel=DeliveryChannel.WEBHOOK,
            kind=kind,
            user_id=None,
            endpoint_id=endpoint_id,
            count=count,
        )
        for (endpoint_id, kind), count in numbers.items()
    ]


_SHOWN_ELSEWHERE = frozenset({WorkflowKind.AUTOMATION_RUN, WorkflowKind.DELIVERY})
"""Kinds whose work is shown as automations and as messages, to callers who can see them."""


def _work(rows: Iterable[_Written]) -> list[shapes.StartedWork]:
    numbers = Counter(
        (row.values["workflow_kind"], row.values["intent"])
        for row in rows
        if row.source == "outbox" and row.after is not None
    )
    return [
        shapes.StartedWork(workflow_kind=workflow_kind, intent=intent, count=count)
        for (workflow_kind, intent), count in numbers.items()
        if workflow_kind not in _SHOWN_ELSEWHERE
    ]
