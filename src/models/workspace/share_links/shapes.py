"""Share links on the wire (interface.md#share-links), and what they show to a visitor."""

from typing import Annotated, Any

from pydantic import Field

from models.content.items.rules import ItemKind
from models.core.base import Id, Input, JsonObject, Moment, Nullable, Shape
from models.core.pagination import Listed
from models.data.fields.rules.fields import FieldKind
from models.data.forms.shapes import PublicOption
from models.people.api_keys import Expiry
from models.workspace.share_links.visitors import MAX_USES


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
