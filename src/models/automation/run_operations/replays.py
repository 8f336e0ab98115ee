"""Replaying many events of the inbox for one automation: the events are what is treated.

The id of a replay follows from the operation and the event, and that of its run from the replay, so
an event is replayed once however often a step is repeated.
"""

from collections.abc import Sequence

import sqlalchemy as sa

from models.automation.inbox.queries import EventQuery, concerned_events, redacted_among
from models.automation.inbox.rules import WITH_RUN, EventOutcome
from models.automation.run_operations import rules
from models.automation.run_operations.queries import BulkReplay, RunOperationPreview
from models.automation.run_operations.selection import numbered, write_down
from models.automation.triggers.event_replays import ReplayEvent, replay
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.pagination import native, plain
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id
from runtime.errors import PlatformError, UnavailableError


async def select_events(
    work: UnitOfWork, actor: Actor, operation: rules.OperationRow
) -> tuple[int, JsonObject, bool]:
    """Write down the next events of a filter, the oldest first.

    Returns their number, the selection that continues behind them, and whether they are the last.
    """
    selection = dict(operation.selection)
    events = matching_events(actor, operation.parameters, selection["events"])
    moment, event_id = events.selected_columns
    if "after" in selection:
        events = events.where(
            sa.tuple_(moment, event_id) > sa.tuple_(*map(native, selection["after"]))
        )
    limit = min(rules.SELECTED_AT_ONCE, rules.MAX_RUNS - operation.selected)
    page = events.order_by(moment, event_id).limit(limit).subquery()
    last = await work.first(
        sa.select(page.c.received_at, page.c.id, sa.func.count().over().label("size"))
        .order_by(page.c.received_at.desc(), page.c.id.desc())
        .limit(1)
    )
    if last is None:
        return 0, selection, True
    turn = sa.func.row_number().over(order_by=(page.c.received_at, page.c.id))
    count = await write_down(work, numbered(operation, turn + operation.selected, page.c.id))
    selection["after"] = [plain(last.received_at), plain(last.id)]
    return count, selection, last.size < limit


def matching_events(
    actor: Actor, parameters: JsonObject, conditions: JsonObject
) -> sa.Select[tuple[()]]:
    """The events of a filter that concerned the automation: when they came, and their ids."""
    query = EventQuery.model_validate(conditions, strict=False)
    return concerned_events(actor, Id(parameters["automationId"]), query)


async def preview_replay(
    work: UnitOfWork, actor: Actor, parameters: JsonObject, body: BulkReplay, counted: int
) -> RunOperationPreview:
    """The number of events that a replay would treat, and what their payloads lack."""
    query = None if body.filter is None else body.filter.until_at_most(work.now)
    events = matching_events(actor, parameters, {} if query is None else query.wire)
    if body.event_ids is not None:
        ids = sa.literal(list(set(body.event_ids)), sa.ARRAY(sa.Uuid))
        events = events.where(events.selected_columns.id == sa.any_(ids))
    some = events.limit(counted + 1).subquery()
    total = await work.scalar(sa.select(sa.func.count()).select_from(some))
    examined, redacted, paths = await redacted_among(work, events, body.automation_id)
    return RunOperationPreview(
        total=min(total, counted),
        fitting=min(total, counted),
        more=total > counted,
        examined=examined,
        statuses={},
        retried_before=0,
        versions=[],
        repeats=[],
        records=0,
        outside=[],
        until=None if query is None else query.until,
        redacted=redacted,
        redacted_paths=paths,
    )


async def replay_events(
    work: UnitOfWork, actor: Actor, operation: rules.OperationRow, event_ids: Sequence[Id]
) -> Sequence[rules.Treated]:
    """Replay these events, in their order."""
    body = ReplayEvent.model_validate(operation.parameters, strict=False)
    treated: list[rules.Treated] = []
    for event_id in event_ids:
        replay_id = derived_id(operation.id, event_id, "replay")
        try:
            async with work.savepoint():
                outcome = await replay(work, actor, event_id, replay_id, body)
        except UnavailableError:
            raise
        except PlatformError as error:
            treated.append(rules.Treated(event_id, rules.RunOutcome.FAILED, rules.reason_of(error)))
            continue
        if EventOutcome(outcome.outcome) in WITH_RUN:
            treated.append(
                rules.Treated(event_id, rules.RunOutcome.SUCCEEDED, new_run_id=outcome.run_id)
            )
        else:
            treated.append(rules.Treated(event_id, rules.RunOutcome.SKIPPED, outcome.reason))
    return treated
