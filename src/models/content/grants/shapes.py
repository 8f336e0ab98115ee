"""Access to an item on the wire (decisions C4, C16)."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from models.content.items.rules import AccessMode
from models.core.access.rules import Level
from models.core.base import Id, Input, InputId, Shape

MAX_GRANTS = 500


class LevelName(StrEnum):
    """The levels that a grant can give; each includes the levels before it."""

    VIEW = "view"
    COMMENT = "comment"
    RUN = "run"
    EDIT = "edit"
    MANAGE = "manage"

    @property
    def level(self) -> Level:
        return Level[self.name]


class GrantInput(Input):
    user_id: InputId
    level: Annotated[LevelName, Field(strict=False)]


class ReplaceAccess(Input):
    """Body of replace access: the whole of it, so that nobody keeps a grant by accident."""

    access_mode: Annotated[AccessMode, Field(strict=False)]
    grants: Annotated[list[GrantInput], Field(max_length=MAX_GRANTS)]


class GrantBody(Shape):
    user_id: Id
    email: str | None
    name: str | None
    level: LevelName


class ItemAccess(Shape):
    """The item's own mode and grants; what it inherits is at the items above it."""

    item_id: Id
    access_mode: AccessMode
    grants: list[GrantBody]
