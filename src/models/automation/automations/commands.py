"""Commands on automations; their subscriptions, webhook secrets and place follow.

A command that changes a trigger, publishes, enables, trashes or restores an automation calls
`subscribe` in the same transaction.
"""

import base64
import secrets
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import Insert
from sqlalchemy.dialects.postgresql import insert as upsert

from models.automation.automations import graphs, runnable_versions, schedules, shapes, versions
from models.automation.automations.queries import detail, summary
from models.automation.automations.rules.graph.shapes import Graph
from models.automation.automations.rules.language.bindings import written
from models.automation.automations.rules.triggers import kinds as trigger_kinds
from models.automation.automations.rules.triggers.configs import parse_trigger_config
from models.automation.automations.tables import automation, webhook_secret_place
from models.automation.automations.versions import Content, LockedAutomation, lock
from models.content.items.commands import check_parent, create_item_for, rename_item, trash_item
from models.content.items.rules import ItemKind
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.http_requests import restored
from models.core.keys import reserve_key, share_field_keys
from models.core.values import next_updated_at
from models.messages.events.store import automation_subscription, trigger_event
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, ValidationError
from runtime.ids import new_id


async def create_automation(
    work: UnitOfWork, actor: Actor, keys: KeyRing, body: shapes.CreateAutomation
) -> shapes.AutomationDetail:
    """Create an automation. Its version 1 is an open draft; without a graph there is none yet.

    Raises NotFoundError or DeniedError for the parent, NotFoundError for a connection or a
    webhook endpoint that the actor does not see, ConflictError for a key in use.
    """
    await check_parent(work, actor, body.parent_item_id)
    await share_field_keys(work, actor.workspace_id)
    content = None
    if body.graph is not None:
        content = Content(_trigger(body.trigger, body.trigger_config), body.graph)
        await graphs.check_named(work, actor, body.graph)
    automation_id = new_id()
    item_id = await create_item_for(
        work,
        actor,
        kind=ItemKind.AUTOMATION,
        target_id=automation_id,
        title=body.label,
        parent_item_id=body.parent_item_id,
    )
    await work.execute(
        sa.insert(automation).values(
            id=automation_id,
            workspace_id=actor.workspace_id,
            item_id=item_id,
            key=await reserve_key(work, automation, actor.workspace_id, body.key, body.label),
            label=body.label,
            enabled=body.enabled,
            last_version=0,
            webhook_token=secrets.token_hex(16),
            sealed_webhook_secret=sealed_webhook_secret(keys, automation_id),
            created_at=work.now,
            updated_at=work.now,
        )
    )
    if content is not None:
        owner = LockedAutomation(automation_id, item_id, None, None, 0)
        await _draft(work, actor, owner, content)
    return await detail(work, actor, keys, automation_id)


async def update_automation(
    work: UnitOfWork,
    actor: Actor,
    keys: KeyRing,
    automation_id: Id,
    body: shapes.UpdateAutomation,
    expected_updated_at: datetime | None = None,
) -> shapes.AutomationDetail:
    """Change what the body names. A new graph or trigger is written to the draft, or opens one.

    Raises ConflictError when the automation has changed since `expected_updated_at`, the
    `updatedAt` that was read, or the open draft is another than the body expects.
    """
    owner = await versions.lock(work, actor, automation_id)
    owner.expect_unchanged(expected_updated_at)
    owner.expect_draft(body.expected_draft_version_id)
    changed: JsonObject = body.model_dump(include={"label", "enabled"}, exclude_none=True)
    if changed:
        await work.execute(
            sa.update(automation)
            .where(automation.c.id == automation_id)
            .values(**changed, updated_at=owner.changed_at(work.now))
        )
        await schedules.follow(work, automation_id)
    if body.enabled is not None:
        await subscribe(work, actor.workspace_id, automation_id)
    if body.label is not None:
        await rename_item(work, actor, owner.item_id, body.label)
    if body.graph is not None or body.trigger_config is not None or body.trigger is not None:
        before = await _current(work, actor, owner)
        if body.graph is not None:
            await graphs.check_named(work, actor, body.graph, before.graph if before else None)
        content = _changed(before, body.trigger, body.trigger_config, body.graph)
        await _draft(work, actor, owner, content)
    return await detail(work, actor, keys, automation_id)


async def _draft(work: UnitOfWork, actor: Actor, owner: LockedAutomation, content: Content) -> None:
    """Write the draft; before anything is published, its trigger is the one that is dormant."""
    await versions.write_draft(work, actor, owner, content)
    if owner.published_version_id is None:
        await subscribe(work, actor.workspace_id, owner.id)


async def set_label(work: UnitOfWork, workspace_id: Id, automation_id: Id, label: str) -> None:
    """Set the label of an automation; the caller gives its item the same title."""
    await work.execute(
        sa.update(automation)
        .where(automation.c.workspace_id == workspace_id, automation.c.id == automation_id)
        .values(label=label, updated_at=next_updated_at(automation.c.updated_at, work.now))
    )
    await schedules.announce(work, automation.c.id == automation_id)


async def publish(
    work: UnitOfWork, actor: Actor, keys: KeyRing, automation_id: Id, body: shapes.PublishAutomation
) -> shapes.AutomationDetail:
    """Publish the open draft, or the version the body names."""
    owner = await versions.lock(work, actor, automation_id)
    owner.expect_draft(body.expected_draft_version_id)
    version_id = body.version_id or owner.draft_version_id
    if version_id is None:
        raise ConflictError("No draft to publish.")
    await versions.publish(work, actor, owner, version_id, body.note)
    await subscribe(work, actor.workspace_id, automation_id)
    await schedules.follow(work, automation_id)
    return await detail(work, actor, keys, automation_id)


async def discard_draft(
    work: UnitOfWork, actor: Actor, keys: KeyRing, automation_id: Id
) -> shapes.AutomationDetail:
    """Archive the open draft. The published version, if there is one, does not change."""
    owner = await versions.lock(work, actor, automation_id)
    await versions.discard_draft(work, owner)
    return await detail(work, actor, keys, automation_id)


async def restore_version(
    work: UnitOfWork, actor: Actor, keys: KeyRing, automation_id: Id, version_id: Id
) -> shapes.AutomationDetail:
    """Open a draft with the content of an earlier version."""
    owner = await versions.lock(work, actor, automation_id)
    await versions.restore(work, actor, owner, version_id)
    return await detail(work, actor, keys, automation_id)


async def delete_automation(
    work: UnitOfWork, actor: Actor, keys: KeyRing, automation_id: Id
) -> shapes.AutomationDetail:
    """Move an automation to the trash and return it as it was. Open runs continue."""
    found = await detail(work, actor, keys, automation_id)
    await trash_item(work, actor, found.item_id)
    return found


async def validate(
    work: UnitOfWork, actor: Actor, automation_id: Id, body: shapes.ValidateAutomation
) -> shapes.AutomationValidation:
    """Find the problems of a graph, without saving it."""
    found = await summary(work, actor, automation_id)
    before = None
    if found.version_id is not None:
        before = await versions.content_of(work, actor, automation_id, found.version_id)
    content = _changed(before, None, body.trigger_config, body.graph)
    compiled = await graphs.compile_in(
        work, actor.workspace_id, automation_id, content.trigger_config, content.graph
    )
    return shapes.AutomationValidation(
        valid=not compiled.issues, reference_issues=compiled.all_issues
    )


async def _current(work: UnitOfWork, actor: Actor, owner: LockedAutomation) -> Content | None:
    """The content of the draft, else of the published version; None for neither."""
    version_id = owner.draft_version_id or owner.published_version_id
    if version_id is None:
        return None
    return await versions.content_of(work, actor, owner.id, version_id)


def _changed(
    before: Content | None,
    trigger: trigger_kinds.TriggerKind | None,
    trigger_config: JsonObject | None,
    graph: Graph | None,
) -> Content:
    """The content with what is given in its place. Raises ValidationError without any graph."""
    if before is None:
        if graph is None:
            raise ValidationError.at("graph", "Required: the automation has no version yet.")
        return Content(_trigger(trigger, trigger_config), graph)
    config = before.trigger_config
    if trigger_config is not None or trigger not in {None, before.trigger}:
        config = _trigger(trigger, trigger_config)
    return Content(config, _restored(graph, before.graph))


def _restored(given: Graph | None, before: Graph) -> Graph:
    """The graph, if one is given; credentials that are shown hidden in it are those before."""
    if given is None:
        return before
    whole = given.to_json()
    found = restored(whole, before.to_json(), written)
    return given if found is whole else Graph.model_validate(found)


def _trigger(kind: trigger_kinds.TriggerKind | None, config: JsonObject | None) -> JsonObject:
    """The checked trigger configuration; `kind`, when given, must agree with it.

    See interface.md#triggers.
    """
    given = {"kind": (kind or trigger_kinds.TriggerKind.MANUAL).value} if config is None else config
    if kind is not None and given.get("kind", kind) != kind:
        raise ValidationError.at("trigger", "Must be the same as triggerConfig.kind.")
    return parse_trigger_config({"kind": kind.value, **given} if kind is not None else given)


_TABLE = automation_subscription


async def subscribe(work: UnitOfWork, workspace_id: Id, automation_id: Id) -> None:
    """Make the subscription of an automation what its trigger says, or delete it.

    An automation that still subscribes to the same keeps its position: it misses no event that
    waits. One that starts no run subscribes too, by its published version or else its draft: the
    inbox says of each event why nothing ran.
    """
    dormant = None
    version = await runnable_versions.live(work, workspace_id, automation_id)
    if version is None:
        version, dormant = await runnable_versions.dormant(work, workspace_id, automation_id)
    if version is None or not trigger_kinds.subscribes(version.trigger_config):
        await work.execute(
            sa.delete(_TABLE).where(
                _TABLE.c.workspace_id == workspace_id, _TABLE.c.automation_id == automation_id
            )
        )
        return
    config = version.trigger_config
    dated = config["kind"] == trigger_kinds.TriggerKind.RECORD_DATE_REACHED and dormant is None
    new = upsert(_TABLE).values(
        automation_id=automation_id,
        workspace_id=workspace_id,
        kind=config["kind"],
        subject_id=trigger_kinds.subject_of(config),
        dormant=dormant,
        include_system=trigger_kinds.includes_system_changes(config),
        after_event=_next_event_number(),
        polled_until=work.now if dated else None,
        next_poll_at=work.now if dated else None,
    )
    await work.execute(_replacing(new))
    if dated:
        work.notify_workers = True


def _replacing(new: Insert) -> Insert:
    """The insertion, or the update of the subscription that is there."""
    columns = new.excluded
    goes_on = sa.and_(
        _TABLE.c.kind == columns.kind,
        _TABLE.c.subject_id.is_not_distinct_from(columns.subject_id),
        # Events before it was enabled start no run.
        sa.or_(_TABLE.c.dormant.is_(None), columns.dormant.is_not(None)),
    )
    positions = {
        name: sa.case((goes_on, _TABLE.c[name]), else_=columns[name])
        for name in ("after_event", "polled_until")
    }
    names = ("kind", "subject_id", "dormant", "include_system", "next_poll_at")
    return new.on_conflict_do_update(
        index_elements=["automation_id"],
        set_={**{name: columns[name] for name in names}, **positions},
    )


async def subscribe_all(work: UnitOfWork, workspace_id: Id, automation_ids: Iterable[Id]) -> None:
    """`subscribe` for several automations, such as those below an item that is trashed."""
    for automation_id in sorted(automation_ids):
        await subscribe(work, workspace_id, automation_id)


def _next_event_number() -> sa.ColumnElement[int]:
    """A number above every event there is, and below every one still to come.

    Numbers come from a sequence: an event that is emitted after this commits has a higher one.
    """
    sequence = sa.func.pg_get_serial_sequence(trigger_event.name, "id")
    return sa.cast(sa.func.nextval(sequence), sa.BigInteger)


OVERLAP = timedelta(hours=24)
"""The time for which the previous secret is valid after a rotation (interface.md#webhooks)."""


def sealed_webhook_secret(keys: KeyRing, automation_id: Id) -> bytes:
    """A new secret, sealed: `whsec_` and 32 random bytes in base64 (Standard Webhooks)."""
    secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
    return keys.seal(secret.encode(), webhook_secret_place(automation_id))


async def rotate_webhook_secret(
    work: UnitOfWork, actor: Actor, keys: KeyRing, automation_id: Id
) -> None:
    """Give the webhook a new secret. The previous one is valid for `OVERLAP`, older ones are not.

    Raises NotFoundError.
    """
    owner = await lock(work, actor, automation_id)
    await work.execute(
        sa.update(automation)
        .where(automation.c.workspace_id == actor.workspace_id, automation.c.id == automation_id)
        .values(
            sealed_previous_webhook_secret=automation.c.sealed_webhook_secret,
            previous_webhook_secret_until=work.now + OVERLAP,
            sealed_webhook_secret=sealed_webhook_secret(keys, automation_id),
            updated_at=owner.changed_at(work.now),
        )
    )


async def automations_placed(
    work: UnitOfWork, workspace_id: Id, automation_ids: Sequence[Id]
) -> None:
    """Update schedules and subscriptions after items were trashed, archived or restored."""
    await schedules.announce(work, automation.c.id.in_(automation_ids))
    await subscribe_all(work, workspace_id, automation_ids)


async def automations_closed(work: UnitOfWork, workspace_id: Id) -> None:
    """Stop the schedules of a deleted workspace."""
    await schedules.announce(work, automation.c.workspace_id == workspace_id)


async def rewrite_version(
    work: UnitOfWork,
    actor: Actor,
    automation_id: Id,
    version_id: Id,
    rewrite: Callable[[JsonObject], JsonObject],
    note: str,
) -> None:
    """Replace the draft or the published version by one that executes alike.

    `rewrite` takes and gives an object with `triggerConfig` and `graph`. Raises NotFoundError.
    """
    owner = await versions.lock(work, actor, automation_id)
    content = await versions.content_of(work, actor, automation_id, version_id)
    stored = {"triggerConfig": content.trigger_config, "graph": content.graph.to_json()}
    new = rewrite(stored)
    rewritten = versions.Content(new["triggerConfig"], Graph.model_validate(new["graph"]))
    await versions.rewrite(work, actor, owner, version_id, rewritten, note)
    await subscribe(work, actor.workspace_id, automation_id)
    await schedules.follow(work, automation_id)
