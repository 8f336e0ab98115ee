"""Creating and revoking share links."""

from sqlalchemy import func, insert, update

from models.content.items.queries import find_item
from models.content.items.rules import ItemKind
from models.core.access.rules import Actor
from models.core.base import Id
from models.people.api_keys.rules import check_expiry
from models.workspace.share_links.queries.links import link_body
from models.workspace.share_links.rules import SHAREABLE, new_token
from models.workspace.share_links.shapes import CreateShareLink, IssuedShareLink, ShareLinkBody
from models.workspace.share_links.tables import ShareLink, share_link
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, UnsupportedError
from runtime.timestamps import truncate


async def create_share_link(
    work: UnitOfWork, actor: Actor, keys: KeyRing, link_id: Id, item_id: Id, body: CreateShareLink
) -> IssuedShareLink:
    """Create a link that opens an item to whoever has its token.

    Raises `ValidationError` for an expiry that is no future moment, `UnsupportedError` for a kind
    of item that cannot be shared.
    """
    check_expiry(body.expires_at, work.now)
    item = await find_item(work, actor.workspace_id, item_id)
    if ItemKind(item.kind) not in SHAREABLE:
        raise UnsupportedError(f"An item of kind {item.kind} cannot be shared.")
    token = new_token()
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
        insert(share_link).values(values).returning(*share_link.c), of=ShareLink
    )
    shown = link_body(made, opens=True)
    return IssuedShareLink(**dict(shown), token=token, share_url=f"{shown.url}#{token}")


async def revoke_share_link(
    work: UnitOfWork, actor: Actor, item_id: Id, link_id: Id
) -> ShareLinkBody:
    """Revoke a link for good, and the sessions of its visitors; revoking again changes nothing.

    Raises `NotFoundError`.
    """
    revoked = await work.first(
        update(share_link)
        .where(
            share_link.c.workspace_id == actor.workspace_id,
            share_link.c.workspace_item_id == item_id,
            share_link.c.id == link_id,
        )
        .values(revoked_at=func.coalesce(share_link.c.revoked_at, work.now))
        .returning(*share_link.c),
        of=ShareLink,
    )
    if revoked is None:
        raise NotFoundError("share link")
    return link_body(revoked, opens=False)
