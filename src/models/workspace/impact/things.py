"""Things that definitions name, and what is deleted with them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from models.automation.secrets.store import existing_names
from models.content.files.queries import readable_file
from models.content.items import queries as items
from models.content.items.rules import ItemKind
from models.content.items.shapes import ItemRow
from models.core.access.rules import Actor
from models.core.base import Id
from models.core.references import rules as reference_rules
from models.data.fields.queries import inverse_of, seen_field
from models.data.fields.rules.fields import FieldKind
from models.data.fields.shapes import FieldShape
from models.data.views.queries import seen_view
from models.messages.webhook_endpoints.store import get_endpoint
from models.people.members import get_member
from models.sources.connections.store import get_connection
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError

_PLACED = {
    reference_rules.SubjectKind.DATABASE: ItemKind.DATABASE,
    reference_rules.SubjectKind.ACTION: ItemKind.ACTION,
    reference_rules.SubjectKind.AUTOMATION: ItemKind.AUTOMATION,
    reference_rules.SubjectKind.DATA_SOURCE: ItemKind.DATA_SOURCE,
}
"""Things that items place, by the kinds of these."""
_BY_ITEM = {
    ItemKind.FILE.value: reference_rules.SubjectKind.FILE,
    ItemKind.VIEW.value: reference_rules.SubjectKind.VIEW,
    **{item_kind.value: kind for kind, item_kind in _PLACED.items()},
}


@dataclass(frozen=True, slots=True)
class Found:
    """A thing that the caller sees: its label, and what is deleted with it, itself first."""

    label: str
    sought: Sequence[reference_rules.Sought]


async def find_thing(
    work: UnitOfWork,
    actor: Actor,
    kind: reference_rules.SubjectKind,
    id_: Id | None,
    key: str | None,
) -> Found:
    """A thing by its id, of a secret by its name in `key`. Raises NotFoundError."""
    if id_ is None:
        return await _secret(work, actor, str(key))
    if kind in _PLACED:
        return await _placed(work, actor, kind, id_)
    return await _FINDERS[kind](work, actor, id_, key)


async def _secret(work: UnitOfWork, actor: Actor, name: str) -> Found:
    if not await existing_names(work, actor.workspace_id, [name]):
        raise NotFoundError("secret")
    return Found(
        name,
        [
            reference_rules.Sought(
                subject=reference_rules.Subject(reference_rules.SubjectKind.SECRET, name)
            )
        ],
    )


async def _placed(
    work: UnitOfWork, actor: Actor, kind: reference_rules.SubjectKind, target_id: Id
) -> Found:
    row = await items.item_of_target(work, actor.workspace_id, None, target_id)
    if row is None or row.kind != _PLACED[kind] or not await _sees_item(work, actor, row.id):
        raise NotFoundError(kind.replace("_", " "))
    return await _with_all_below(work, row)


async def _sees_item(work: UnitOfWork, actor: Actor, item_id: Id) -> bool:
    return bool(await work.rows(items.seen_items(actor, [item_id])))


async def _form(work: UnitOfWork, actor: Actor, id_: Id, _: str | None) -> Found:
    if not await _sees_item(work, actor, id_):
        raise NotFoundError("form")
    row = await items.find_item(work, actor.workspace_id, id_)
    if row.kind != ItemKind.FORM:
        raise NotFoundError("form")
    return await _with_all_below(work, row)


async def _file(work: UnitOfWork, actor: Actor, id_: Id, _: str | None) -> Found:
    """A file, also one that no item places."""
    found = await readable_file(work, actor, id_)
    row = await items.item_of_target(work, actor.workspace_id, None, id_)
    if row is not None:
        return await _with_all_below(work, row)
    subject = reference_rules.Subject(reference_rules.SubjectKind.FILE, str(id_))
    return Found(found.name, [reference_rules.Sought(subject=subject)])


async def _item(work: UnitOfWork, actor: Actor, id_: Id, _: str | None) -> Found:
    """An item, which is what it places: both go together."""
    if not await _sees_item(work, actor, id_):
        raise NotFoundError
    return await _with_all_below(work, await items.find_item(work, actor.workspace_id, id_))


async def _with_all_below(work: UnitOfWork, row: ItemRow) -> Found:
    """An item and all that is deleted with it, visible or not."""
    rows = await items.deleted_with(work, row.workspace_id, row.id)
    return Found(row.title, [_of_item(one) for one in rows])


def _of_item(row: ItemRow) -> reference_rules.Sought:
    subject = reference_rules.Subject(reference_rules.SubjectKind.ITEM, str(row.id))
    if row.kind == ItemKind.FORM:
        subject = subject._replace(kind=reference_rules.SubjectKind.FORM)
    elif row.kind in _BY_ITEM:
        subject = reference_rules.Subject(_BY_ITEM[row.kind], str(items.target_of(row)))
    return reference_rules.Sought(subject=subject, item_id=row.id)


async def _field(work: UnitOfWork, actor: Actor, id_: Id, _: str | None) -> Found:
    found = await _seen_field(work, actor, id_)
    sought = [reference_rules.Sought(subject=_field_subject(found))]
    if found.kind is FieldKind.RELATION and (inverse := await inverse_of(work, actor, found)):
        sought.append(reference_rules.Sought(subject=_field_subject(inverse)))
    return Found(found.label, sought)


async def _option(work: UnitOfWork, actor: Actor, id_: Id, key: str | None) -> Found:
    found = await _seen_field(work, actor, id_)
    for option in found.options:
        if option.key == key:
            subject = _field_subject(found)._replace(
                kind=reference_rules.SubjectKind.OPTION, option=option.key
            )
            return Found(option.name, [reference_rules.Sought(subject=subject)])
    raise NotFoundError("option")


async def _seen_field(work: UnitOfWork, actor: Actor, field_id: Id) -> FieldShape:
    found = await seen_field(work, actor, field_id)
    if found is None:
        raise NotFoundError("field")
    return found


def _field_subject(found: FieldShape) -> reference_rules.Subject:
    return reference_rules.Subject(
        reference_rules.SubjectKind.FIELD, str(found.database_id), found.key
    )


async def _view(work: UnitOfWork, actor: Actor, id_: Id, _: str | None) -> Found:
    row = await seen_view(work, actor, id_)
    sought = reference_rules.Sought(
        subject=reference_rules.Subject(reference_rules.SubjectKind.VIEW, str(id_)),
        item_id=row.item_id,
    )
    return Found(row.label, [sought])


async def _connection(work: UnitOfWork, actor: Actor, id_: Id, _: str | None) -> Found:
    found = await get_connection(work, actor, id_)
    return Found(
        found.label,
        [
            reference_rules.Sought(
                subject=reference_rules.Subject(reference_rules.SubjectKind.CONNECTION, str(id_))
            )
        ],
    )


async def _endpoint(work: UnitOfWork, actor: Actor, id_: Id, _: str | None) -> Found:
    found = await get_endpoint(work, actor, id_)
    return Found(
        found.url,
        [
            reference_rules.Sought(
                subject=reference_rules.Subject(
                    reference_rules.SubjectKind.WEBHOOK_ENDPOINT, str(id_)
                )
            )
        ],
    )


async def _member(work: UnitOfWork, actor: Actor, id_: Id, _: str | None) -> Found:
    found = await get_member(work, actor.workspace_id, id_)
    label = found.name or found.email or str(id_)
    return Found(
        label,
        [
            reference_rules.Sought(
                subject=reference_rules.Subject(reference_rules.SubjectKind.MEMBER, str(id_))
            )
        ],
    )


_Finder = Callable[[UnitOfWork, Actor, Id, str | None], Awaitable[Found]]

_FINDERS: Mapping[reference_rules.SubjectKind, _Finder] = {
    reference_rules.SubjectKind.FIELD: _field,
    reference_rules.SubjectKind.OPTION: _option,
    reference_rules.SubjectKind.VIEW: _view,
    reference_rules.SubjectKind.FORM: _form,
    reference_rules.SubjectKind.FILE: _file,
    reference_rules.SubjectKind.ITEM: _item,
    reference_rules.SubjectKind.CONNECTION: _connection,
    reference_rules.SubjectKind.WEBHOOK_ENDPOINT: _endpoint,
    reference_rules.SubjectKind.MEMBER: _member,
}
