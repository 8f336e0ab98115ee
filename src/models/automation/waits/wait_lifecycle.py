"""Beginning and ending the wait of a node, in a transaction that has passed its run's gate."""

from dataclasses import dataclass, field

from models.automation.automation_runs.node_writes import NodeKey
from models.automation.waits import store
from models.automation.waits.rules.resolution import replay, terms_of, timed_out
from models.automation.waits.rules.responses import Resolution
from models.core.base import Id, JsonObject
from runtime.bounded_processes import evaluate_bounded
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
    """Begin a wait. Returns its resolution if a response kept from before resolves it.

    Kept responses that do not count are dropped. Repeating this changes nothing.
    """
    key = wait.key
    if wait.event_key is not None:
        await store.lock_event_key(work, key.workspace_id, wait.event_key)
    row = await store.lock_wait(work, key)
    if row is not None and row.workflow_id is not None:
        return store.read_resolution(row)
    received = [] if row is None else store.read_responses(row)
    if wait.event_key is not None:
        received += await store.events_before(work, key, wait.event_key)
    accepted_responses, resolution = await evaluate_bounded(
        lambda: replay(key.kind, wait.terms, wait.starter, received)
    )
    values = {
        "workflow_id": wait.workflow_id,
        "terms": wait.terms,
        "event_key": wait.event_key,
        "responses": store.stored(accepted_responses),
        **({} if resolution is None else store.ending(work, resolution, accepted_responses[-1])),
    }
    if row is None:
        await store.insert_wait(work, key, **values)
    else:
        await store.update_wait(work, key, **values)
    return resolution


async def end(work: UnitOfWork, key: NodeKey, *, over: bool) -> Resolution | None:
    """The resolution of a wait; None while it goes on. With `over`, it times out now."""
    row = await store.lock_wait(work, key)
    assert row is not None, "a node that waits has its row"
    if (ended := store.read_resolution(row)) is not None:
        return ended
    if not over:
        return None
    resolution = timed_out(key.kind, store.read_responses(row))
    await store.update_wait(work, key, **store.ending(work, resolution))
    return resolution
