"""Runs that wait for a person, and the answers of that person."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

from models.automation.automation_runs.shapes import AutomationRunDetail
from models.automation.waits import commands
from models.automation.waits.commands import PublishEvent, ResumeNode
from models.core.access.rules import Actor, Principal, PrincipalType, Role
from models.core.base import Id
from models.people.workspaces import add_member
from tests.support.engine import Engine, Json, by_node, graph, node
from tests.support.spaces import add_person


async def member(engine: Engine, role: Role = Role.EDITOR) -> Actor:
    """A further member of the engine's workspace, in a session."""
    email = f"{role}-{uuid4().hex}@example.test"
    async with engine.database.transaction() as work:
        user_id = await add_person(work, email)
        await add_member(work, engine.actor.workspace_id, user_id, role)
    principal = Principal(type=PrincipalType.SESSION, id=user_id, user_id=user_id)
    return Actor(
        principal=principal,
        workspace_id=engine.actor.workspace_id,
        role=role,
        scopes=principal.usable_scopes(role),
    )


def held(name: str, kind: str, config: Json) -> Json:
    """A node that waits; its config has a `timeoutSeconds` of its own."""
    return {**node(name, kind), "config": config}


def approval(*assignees: Actor | UUID, **config: Any) -> Json:
    """A graph that asks, and shows by which way it went on."""
    ids = [str(one.user_id if isinstance(one, Actor) else one) for one in assignees]
    return graph(
        held("ask", "approval", {**({"assignees": ids} if ids else {}), **config}),
        node("yes", "transform", output={}),
        node("no", "transform", output={}),
        node("late", "transform", output={}),
        edges=[("ask", "yes", "approved"), ("ask", "no", "rejected"), ("ask", "late", "timeout")],
    )


def event(**config: Any) -> Json:
    """A graph that waits for an event, and shows by which way it went on."""
    return graph(
        held("hear", "wait_event", config),
        node("then", "transform", output={"got": {"type": "node", "value": "hear.data"}}),
        node("late", "transform", output={}),
        edges=[("hear", "then"), ("hear", "late", "timeout")],
    )


async def waiting(engine: Engine, content: Json, payload: Json | None = None) -> tuple[Id, Id]:
    """The automation and a run of it that waits."""
    automation = await engine.publish(content)
    run_id = await engine.start(automation.id, payload)
    await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
    return automation.id, run_id


async def resume(
    engine: Engine, place: tuple[Id, Id], node_id: str, actor: Actor | None = None, **body: Any
) -> AutomationRunDetail:
    """Say something to a node of a run."""
    async with engine.database.transaction() as work:
        return await commands.resume(
            work, actor or engine.actor, *place, node_id, ResumeNode.model_validate(body)
        )


async def publish(engine: Engine, event_key: str, **data: Any) -> int:
    """Publish an event; the number of nodes that continue."""
    body = PublishEvent.model_validate({"eventKey": event_key, "data": data})
    async with engine.database.transaction() as work:
        return await commands.publish_event(work, engine.actor, body)


def ways(run: AutomationRunDetail) -> set[str]:
    """The nodes that ran."""
    return {name for name, one in by_node(run).items() if one.status == "succeeded"}


async def all_of(*calls: Any) -> list[Any]:
    """What calls side by side gave or raised."""
    return list(await asyncio.gather(*calls, return_exceptions=True))
