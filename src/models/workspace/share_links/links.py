"""Share links: their shapes on the wire, and creating, changing and deleting them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Protocol

import sqlalchemy as sa
from pydantic import Field

from models.content.items.queries import find_item, placement_of
from models.content.items.rules import ItemKind
from models.core.access.rules import Actor, Scope
from models.core.base import Id, Input, JsonObject, Moment, Nullable, Shape
from models.core.pagination import Listed, PageRequest
from models.core.references.rules import Definition, Sought, SubjectKind, named_at
from models.data.fields.rules.fields import FieldKind
from models.data.forms.shapes import PublicOption
from models.people.api_keys import Expiry, check_expiry
from models.people.workspaces import live_workspace_of
from models.workspace.share_links import visitors
from models.workspace.share_links.visitors import MAX_USES, share_link
from runtime.clock import truncate
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork, columns_of
from runtime.errors import UnsupportedError


class CreateShareLink(Input):
    """Body of create share link: without an expiry or a number of uses it has none."""

    expires_at: Expiry | None = None
    max_uses: Annotated[int, Field(ge=1, le=MAX_USES)] | None = None
    allow_download: bool = False


class ShareLinkBody(Shape):
    """A share link in lists; `url` is its path without the token.

    `open` is true until it is revoked, expired or used up, and while its creator has access to the
    item. Restricting the item so that the creator loses access closes the link.
    """

    id: Id
    workspace_item_id: Id
    workspace_id: Id
    kind: ItemKind
    url: str
    expires_at: Moment | None
    allow_download: bool
    max_uses: int | None
    use_count: int
    open: bool
    created_at: Moment
    revoked_at: Moment | None


class IssuedShareLink(ShareLinkBody):
    """The answer to a creation: the link, and in no other place its token.

    `shareUrl` opens as it is on the API's host: `url`, `#` and the token.
    """

    token: str
    share_url: str


class ShareLinkList(Listed):
    share_links: list[ShareLinkBody]


class SharedItem(Shape):
    """An item as visitors see it, without its place or owner."""

    id: Id
    kind: ItemKind
    title: str
    icon: str | None
    color: str | None


class SharedField(Shape):
    key: str
    label: str
    kind: FieldKind
    options: list[PublicOption]


class SharedRecord(Shape):
    id: Id
    title: str | None
    data: dict[str, Any]


class SharedRecords(Shape):
    """Content of a database or a view, page by page.

    Fields that speak of people or of other databases are left out.
    """

    fields: list[SharedField]
    records: list[SharedRecord]
    cursor: Nullable[str]


class SharedPoint(Shape):
    """A group of a chart with its figure."""

    name: str
    value: float
    color: str | None


class SharedFigures(Shape):
    """The values of a chart, a number or a list of a dashboard.

    `label` says what is counted, `xLabel` by which field. A list has `records`.
    """

    label: str
    x_label: str | None
    total: float | None
    points: list[SharedPoint]
    records: SharedRecords | None


class SharedBlock(Shape):
    """A block without the things it names elsewhere; a file it shows has a `downloadUrl`.

    On a dashboard `figures` has what a chart, a number or a list shows, while the link's creator
    may see its database.
    """

    id: Id
    kind: str
    content: JsonObject
    order: float
    x: float | None
    y: float | None
    w: float | None
    h: float | None
    figures: SharedFigures | None
    children: "list[SharedBlock]"


class SharedSurface(Shape):
    """Content of a page, note, canvas or dashboard."""

    blocks: list[SharedBlock]


class SharedFolder(Shape):
    """Content of a folder: the items directly in it that are open to everyone who sees it."""

    children: list[SharedItem]
    cursor: Nullable[str]


class SharedFile(Shape):
    """Content of a file; without `allowDownload` there is no `downloadUrl`."""

    name: str
    mime_type: str
    byte_size: int
    download_url: str | None
    created_at: Moment


class SharedForm(Shape):
    """Content of a form: where it is read and filled in."""

    form_url: str


SharedContent = SharedSurface | SharedRecords | SharedFolder | SharedFile | SharedForm


class Visit(Shape):
    """The content that a share link opens.

    `session` reads on until `sessionExpiresAt` without another use of the link: send it as
    `X-Share-Session`.
    """

    item: SharedItem
    content: SharedContent
    allow_download: bool
    session: str
    session_expires_at: Moment


async def create_share_link(
    work: UnitOfWork,
    actor: Actor,
    keys: KeyRing,
    link_id: Id,
    item_id: Id,
    body: CreateShareLink,
) -> IssuedShareLink:
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
    return IssuedShareLink(**dict(shown), token=token, share_url=f"{shown.url}#{token}")


async def revoke_share_link(
    work: UnitOfWork, actor: Actor, item_id: Id, link_id: Id
) -> ShareLinkBody:
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
) -> ShareLinkList:
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
    return ShareLinkList(share_links=links, cursor=link_page.cursor)


async def link_definitions(work: UnitOfWork, actor: Actor, sought: Sought) -> Sequence[Definition]:
    """The share links of a thing's item that may still open."""
    if not sought.item_ids:
        return []
    rows = await work.rows(
        sa.select(share_link).where(
            share_link.c.workspace_id == actor.workspace_id,
            share_link.c.workspace_item_id
            == sa.any_(sa.literal(sought.item_ids, sa.ARRAY(sa.Uuid))),
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


def link_body(row: visitors.ShareLink, *, opens: bool) -> ShareLinkBody:
    """A row of the table as the interface shows it."""
    shown = {**columns_of(row), "url": f"/v1/share/{row.id}", "open": opens}
    return ShareLinkBody.model_validate(shown)


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
