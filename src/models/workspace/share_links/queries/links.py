"""Reading share links, as members see them."""

from sqlalchemy import select

from models.content.items.queries import placement_of
from models.core.access.rules import Actor
from models.core.base import Id
from models.core.pagination import PageRequest
from models.workspace.share_links.shapes import ShareLinkBody, ShareLinkList
from models.workspace.share_links.tables import ShareLink, share_link
from runtime.database import UnitOfWork, columns_of

visible = placement_of(share_link, "workspace_item_id")
"""Where a link's item is: `await visible(work, workspace_ids, share_link_id, user_id)`."""


async def list_share_links(
    work: UnitOfWork, actor: Actor, item_id: Id, page: PageRequest
) -> ShareLinkList:
    """The links of an item, newest first, revoked ones included, without any token."""
    statement = select(share_link).where(
        share_link.c.workspace_id == actor.workspace_id,
        share_link.c.workspace_item_id == item_id,
    )
    shown = await page.descending(
        work, statement, share_link.c.created_at, share_link.c.id, of=ShareLink
    )
    return ShareLinkList(share_links=[link_body(row) for row in shown.items], cursor=shown.cursor)


def link_body(row: ShareLink) -> ShareLinkBody:
    """A row of the table as the interface shows it."""
    return ShareLinkBody.model_validate({**columns_of(row), "url": f"/share/{row.id}"})
