"""Actions against running workers."""

from functools import partial
from typing import Any

from sqlalchemy import select

from models.automation.action_runs import store
from models.automation.action_runs.store import ActionRunDetail, RunAction
from models.automation.action_runs.tables import action_run
from models.automation.actions.rules import CreateAction
from models.automation.actions.store import create_action
from models.core.base import Id
from models.core.pagination import page_request
from runtime.ids import new_id
from tests.support.engine import KEYS, Engine
from tests.support.patience import eventually, found_when

Json = dict[str, Any]


async def make(engine: Engine, kind: str, /, **config: Any) -> Id:
    """An enabled action."""
    body = CreateAction.model_validate({"label": "Act", "kind": kind, "config": config})
    async with engine.database.transaction() as work:
        return (await create_action(work, engine.actor, body)).id


def step(id_: str, kind: str, /, **fields: Any) -> Json:
    """A step of a sequence; keywords that are no step fields make up its config."""
    own = {"input", "when", "continueOnError", "retry"}
    config = {key: value for key, value in fields.items() if key not in own}
    return {
        "id": id_,
        "kind": kind,
        "config": config,
        **{key: value for key, value in fields.items() if key in own},
    }


async def start(engine: Engine, action_id: Id, given: Json | None = None) -> Id:
    """Accept a run."""
    run_id = new_id()
    body = RunAction.model_validate({"input": given or {}})
    async with engine.database.transaction() as work:
        await store.run_action(work, engine.actor, action_id, run_id, body)
    return run_id


async def get(engine: Engine, action_id: Id, run_id: Id) -> ActionRunDetail:
    async with engine.database.reading() as work:
        return await store.get_run(work, engine.actor, action_id, run_id)


async def until(engine: Engine, action_id: Id, run_id: Id, condition: Any) -> ActionRunDetail:
    """The run once it satisfies the condition."""
    return await found_when(partial(get, engine, action_id, run_id), condition)


async def ended(engine: Engine, action_id: Id, run_id: Id) -> ActionRunDetail:
    """The run once it has ended."""
    await eventually(partial(_has_ended, engine, run_id), what="the end of the action run")
    return await get(engine, action_id, run_id)


async def _has_ended(engine: Engine, run_id: Id) -> bool:
    """Asked over and over: reading the whole run takes several times as long."""
    async with engine.database.reading() as work:
        status = select(action_run.c.status).where(action_run.c.id == run_id)
        return bool(await work.scalar(status) != "started")


async def act(
    engine: Engine, kind: str, given: Json | None = None, /, **config: Any
) -> ActionRunDetail:
    """Make an action, run it, wait."""
    action_id = await make(engine, kind, **config)
    return await ended(engine, action_id, await start(engine, action_id, given))


async def cancel(engine: Engine, action_id: Id, run_id: Id) -> ActionRunDetail:
    async with engine.database.transaction() as work:
        return await store.cancel_run(work, engine.actor, action_id, run_id)


async def of_action(engine: Engine, action_id: Id) -> list[ActionRunDetail]:
    """The runs of an action, newest first."""
    async with engine.database.reading() as work:
        page = page_request(KEYS, 100, None)
        return (await store.list_runs(work, engine.actor, action_id, page)).items


def states(run: ActionRunDetail) -> dict[str, str]:
    """The status of every step, by its id."""
    return {step_id: one.status.value for step_id, one in run.step_results.items()}
