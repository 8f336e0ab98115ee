"""Creating, reading and revoking share links, as members do."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import sqlalchemy as sa

from models.content.items.queries import find_item, placement_of
from models.content.items.rules import ItemKind
from models.core.access.rules import Actor, Scope
from models.core.base import Id
from models.core.pagination import PageRequest
from models.core.references.rules import Definition, Sought, SubjectKind, named_at
from models.people.api_keys import check_expiry
from models.people.workspaces import live_workspace_of
from models.workspace.share_links import shapes, visitors
from models.workspace.share_links.visitors import share_link
from runtime.clock import truncate
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork, columns_of
from runtime.errors import UnsupportedError


async def create_share_link(
    work: UnitOfWork,
    actor: Actor,
    keys: KeyRing,
    link_id: Id,
    item_id: Id,
    body: shapes.CreateShareLink,
) -> shapes.IssuedShareLink:
    """Create a link that opens an item to each holder of its token.

    Raises `ValidationError` for an expiry that is no future moment, `UnsupportedError` for a kind
    of item that cannot be shared.
    """
    check_expiry(body.expires_at, work.now)
    item = await find_item(work, actor.workspace_id, item_id)
    if ItemKind(item.kind) not in visitors.SHAREABLE:
        raise UnsupportedError(f"Items of the kind {item.kind} can't be shared.")
    token = visitors.new_token()
    values = {
        "id": link_id,
        "workspace_id": actor.workspace_id,
        "workspace_item_id": item_id,
        "kind": item.kind,
        "digest": keys.digest(token.encode()),
        "digest_key": keys.current_id,
        "expires_at": None if body.expires_at is None else truncate(body.expires_at),
        "max_uses": body.max_uses,
        "allow_download": body.allow_download,
        "created_by_user_id": actor.user_id,
        "created_at": work.now,
    }
    (made,) = await work.rows(
        sa.insert(share_link).values(values).returning(*share_link.c), of=visitors.ShareLink
    )
    shown = link_body(made, opens=True)
    return shapes.IssuedShareLink(**dict(shown), token=token, share_url=f"{shown.url}#{token}")


async def revoke_share_link(
    work: UnitOfWork, actor: Actor, item_id: Id, link_id: Id
) -> shapes.ShareLinkBody:
    """Revoke a link for good, and the sessions of its visitors; revoking again changes nothing.

    Raises `NotFoundError`.
    """
    revoked = await work.one(
        sa.update(share_link)
        .where(
            share_link.c.workspace_id == actor.workspace_id,
            share_link.c.workspace_item_id == item_id,
            share_link.c.id == link_id,
        )
        .values(revoked_at=sa.func.coalesce(share_link.c.revoked_at, work.now))
        .returning(*share_link.c),
        "share link",
        of=visitors.ShareLink,
    )
    return link_body(revoked, opens=False)


visible = placement_of(share_link, "workspace_item_id")
"""The placement of a link's item: `await visible(work, workspace_ids, share_link_id, user_id)`."""


async def list_share_links(
    work: UnitOfWork, actor: Actor, item_id: Id, page: PageRequest
) -> shapes.ShareLinkList:
    """The links of an item, newest first, revoked ones included, without any token.

    `open` is the same for all links of one maker that have not ended otherwise.
    """
    statement = sa.select(share_link).where(
        share_link.c.workspace_id == actor.workspace_id,
        share_link.c.workspace_item_id == item_id,
    )
    link_page = await page.descending(
        work, statement, share_link.c.created_at, share_link.c.id, of=visitors.ShareLink
    )
    creators = {row.created_by_user_id: row for row in link_page.items if may_open(row, work.now)}
    seeing = {user_id for user_id, row in creators.items() if await visitors.maker_sees(work, row)}
    links = [
        link_body(row, opens=row.created_by_user_id in seeing and may_open(row, work.now))
        for row in link_page.items
    ]
    return shapes.ShareLinkList(share_links=links, cursor=link_page.cursor)


async def link_definitions(work: UnitOfWork, actor: Actor, sought: Sought) -> Sequence[Definition]:
    """The share links of a thing's item that may still open."""
    if sought.item_id is None:
        return []
    rows = await work.rows(
        sa.select(share_link).where(
            share_link.c.workspace_id == actor.workspace_id,
            share_link.c.workspace_item_id == sought.item_id,
        ),
        of=visitors.ShareLink,
    )
    return [
        Definition(
            kind="share_link",
            id=row.id,
            label="Share link",
            scope=Scope.RESOURCES_READ,
            item_id=row.workspace_item_id,
            references=list(named_at(SubjectKind.ITEM, str(row.workspace_item_id), "itemId")),
        )
        for row in rows
        if may_open(row, work.now)
    ]


def may_open(row: visitors.ShareLink, now: datetime) -> bool:
    """True when a link has neither been revoked nor expired nor been used up."""
    used_up = row.max_uses is not None and row.use_count >= row.max_uses
    expired = row.expires_at is not None and row.expires_at <= now
    return row.revoked_at is None and not used_up and not expired


def link_body(row: visitors.ShareLink, *, opens: bool) -> shapes.ShareLinkBody:
    """A row of the table as the interface shows it."""
    shown = {**columns_of(row), "url": f"/v1/share/{row.id}", "open": opens}
    return shapes.ShareLinkBody.model_validate(shown)


class OutdatedLink(Protocol):
    """A live link whose digest was made with an older secret key, which it therefore needs."""

    id: Id
    workspace_id: Id
    kind: str
    created_at: datetime


async def outdated_links(
    work: UnitOfWork, secret_key_id: bytes, limit: int
) -> Sequence[OutdatedLink]:
    """Live links of all workspaces that were not used under the current secret key."""
    columns = share_link.c
    statement = (
        sa.select(columns.id, columns.workspace_id, columns.kind, columns.created_at)
        .join(*live_workspace_of(share_link))
        .where(
            columns.digest_key.is_distinct_from(secret_key_id),
            columns.revoked_at.is_(None),
            sa.or_(columns.expires_at.is_(None), columns.expires_at > work.now),
            sa.or_(columns.max_uses.is_(None), columns.use_count < columns.max_uses),
        )
        .order_by(columns.created_at.desc(), columns.id)
        .limit(limit)
    )
    return await work.rows(statement, of=OutdatedLink)
