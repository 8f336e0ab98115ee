"""Surfaces, blocks and comments on the wire (ADR 0009)."""

from typing import Annotated

from pydantic import Field

from models.content.surfaces.rules.contents import SurfaceKind
from models.core.base import Id, Input, InputId, JsonObject, Moment, Shape
from models.core.pagination import Listed
from models.core.values import InputMoment

MAX_ADDED = 500
MAX_BLOCKS = 5_000

Order = Annotated[float, Field(allow_inf_nan=False, ge=-1e15, le=1e15)]
Side = Annotated[float, Field(allow_inf_nan=False, ge=-1e6, le=1e6)]
Version = Annotated[int, Field(ge=1)]
Words = Annotated[str, Field(min_length=1, max_length=10_000)]


class BlockInput(Input):
    """A block with what is nested in it.

    `kind` and `content` are those the kind of surface knows. `id` is that of a block of this
    surface, or a new one that the client chooses. `order` counts among siblings; without it a block
    follows the one before. A canvas needs `x`, `y`, `w`, `h` in its own units, a dashboard in cells
    of a grid of 12 columns.
    """

    id: InputId | None = None
    kind: Annotated[str, Field(max_length=50)]
    content: JsonObject = Field(default_factory=dict)
    order: Order | None = None
    x: Side | None = None
    y: Side | None = None
    w: Side | None = None
    h: Side | None = None
    children: "list[BlockInput]" = Field(default_factory=list, max_length=MAX_BLOCKS)


class SurfaceContent(Input):
    """The content of a surface: free-form settings, and the blocks from top to bottom."""

    settings: JsonObject | None = None
    blocks: list[BlockInput] = Field(default_factory=list, max_length=MAX_BLOCKS)


class ReplaceSurface(Input):
    """Body of replace surface: the whole content.

    A block whose `id` is on the surface is kept; blocks that are not named are deleted. With
    `expectedVersion` (or the header `If-Match`) a surface changed since is left unchanged.
    """

    settings: JsonObject = Field(default_factory=dict)
    blocks: Annotated[list[BlockInput], Field(max_length=MAX_BLOCKS)]
    expected_version: Version | None = None


class AddBlocks(Input):
    """Body of add blocks: at most 500 with those nested in them.

    `afterBlockId` is the sibling that they follow, null for none; without it they are the last.
    """

    blocks: Annotated[list[BlockInput], Field(min_length=1, max_length=MAX_ADDED)]
    parent_block_id: InputId | None = None
    after_block_id: InputId | None = None


class UpdateBlock(Input):
    """Body of update block: given keys are replaced; `parentBlockId: null` moves to the top.

    `afterBlockId` moves it behind a sibling, null before all. With `expectedUpdatedAt` a block
    that was changed since is left unchanged; other blocks do not matter.
    """

    kind: Annotated[str, Field(max_length=50)] | None = None
    content: JsonObject | None = None
    parent_block_id: InputId | None = None
    after_block_id: InputId | None = None
    order: Order | None = None
    x: Side | None = None
    y: Side | None = None
    w: Side | None = None
    h: Side | None = None
    expected_updated_at: InputMoment | None = None


class BlockBody(Shape):
    """One block; `x`, `y`, `w`, `h` are absent where the kind of surface has no positions."""

    id: Id
    parent_block_id: Id | None
    kind: str
    content: JsonObject
    order: float
    x: float | None
    y: float | None
    w: float | None
    h: float | None
    created_at: Moment
    updated_at: Moment


class BlockDetail(BlockBody):
    """A block by itself; `hasChildren` says whether others are nested in it."""

    has_children: bool


class BlockTree(BlockBody):
    """A block with what is nested in it, in order."""

    children: "list[BlockTree]"


class BlockList(Listed):
    blocks: list[BlockDetail]


class ChangedBlock(Shape):
    """A block after a change, and the new version of its surface."""

    block: BlockDetail
    version: int


class AddedBlocks(Shape):
    """The new blocks with what is nested in them, and the new version of their surface."""

    blocks: list[BlockTree]
    version: int


class DeletedBlock(Shape):
    """A deleted block with what was nested in it, and the new version of its surface."""

    id: Id
    version: int


class SurfaceDetail(Shape):
    """A surface with its blocks; `itemId` is absent for the content of a record."""

    id: Id
    workspace_id: Id
    item_id: Id | None
    record_id: Id | None
    kind: SurfaceKind
    version: int
    settings: JsonObject
    blocks: list[BlockTree]
    created_at: Moment
    updated_at: Moment


class CreateComment(Input):
    """Body of create comment: on the surface, on a block, or in reply to a thread."""

    body: Words
    block_id: InputId | None = None
    parent_comment_id: InputId | None = None


class UpdateComment(Input):
    """Body of update comment: its author changes `body`; `resolved` applies to the whole thread."""

    body: Words | None = None
    resolved: bool | None = None


class CommentDetail(Shape):
    """A comment; `parentCommentId` is absent for the one that begins a thread."""

    id: Id
    surface_id: Id
    block_id: Id | None
    parent_comment_id: Id | None
    body: str
    author_user_id: Id
    resolved_at: Moment | None
    resolved_by_user_id: Id | None
    created_at: Moment
    updated_at: Moment


class CommentList(Listed):
    comments: list[CommentDetail]
