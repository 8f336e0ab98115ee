"""A node begins to wait, and goes on; both inside a transaction that has passed its run's gate."""

from dataclasses import dataclass, field

from models.automation.automation_runs.node_writes import NodeKey
from models.automation.waits import store
from models.automation.waits.rules.resolution import out_of_time, replay, terms_of
from models.automation.waits.rules.responses import Resolution
from models.core.base import Id, JsonObject
from runtime.database import UnitOfWork


@dataclass(frozen=True, slots=True)
class NewWait:
    """A node about to wait; `starter` is whoever started its run.

    `variables` are what its filter reads of the run.
    """

    key: NodeKey
    workflow_id: str
    parameters: JsonObject
    starter: Id | None
    variables: JsonObject = field(default_factory=dict)

    @property
    def event_key(self) -> str | None:
        return self.parameters.get("eventKey")

    @property
    def terms(self) -> JsonObject:
        return terms_of(self.key.kind, self.parameters, self.variables)


async def begin(work: UnitOfWork, wait: NewWait) -> Resolution | None:
    """Let a node wait; gives how the wait has ended if it has, perhaps by what came too early.

    Of what came too early, what does not count is dropped. Repeating this changes nothing.
    """
    key = wait.key
    if wait.event_key is not None:
        await store.lock_event_key(work, key.workspace_id, wait.event_key)
    row = await store.lock_wait(work, key)
    if row is not None and row.workflow_id is not None:
        return None if row.outcome is None else Resolution(row.outcome, row.output)
    came = [] if row is None else store.read_said(row)
    if wait.event_key is not None:
        came += await store.events_before(work, key, wait.event_key)
    counted, resolution = replay(key.kind, wait.terms, wait.starter, came)
    values = {
        "workflow_id": wait.workflow_id,
        "terms": wait.terms,
        "event_key": wait.event_key,
        "said": store.written(counted),
        **({} if resolution is None else store.ending(work, resolution, counted[-1])),
    }
    if row is None:
        await store.insert_wait(work, key, **values)
    else:
        await store.update_wait(work, key, **values)
    return resolution


async def end(work: UnitOfWork, key: NodeKey, *, over: bool) -> Resolution | None:
    """How a wait has ended; one that goes on ends now if its time is over, else gives None."""
    row = await store.lock_wait(work, key)
    assert row is not None, "a node that waits has its row"
    if row.outcome is not None:
        return Resolution(row.outcome, row.output)
    if not over:
        return None
    resolution = out_of_time(key.kind, store.read_said(row))
    await store.update_wait(work, key, **store.ending(work, resolution))
    return resolution
