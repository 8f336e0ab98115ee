"""Actions on the wire (interface.md#actions)."""

from typing import Annotated

from pydantic import Field

from models.automation.actions.rules import ActionKind
from models.core.base import Id, Input, JsonObject, Label, Moment, Shape
from models.core.keys import Key
from models.core.pagination import Listed


class ActionConfig(Input):
    """`config` of an item of the kind action: an action without its label."""

    key: Key | None = None
    kind: Annotated[ActionKind, Field(strict=False)]
    config: JsonObject
    enabled: bool = True


class CreateAction(ActionConfig):
    """Body of create action."""

    label: Label


class UpdateAction(Input):
    """Body of update action; the kind is fixed, and `config` is replaced as a whole."""

    label: Annotated[Label, Field(default="")]
    key: Annotated[Key, Field(default="")]
    config: Annotated[JsonObject, Field(default_factory=dict)]
    enabled: Annotated[bool, Field(default=True)]


class ActionDetail(Shape):
    """An action; `config.kind` is its kind.

    Only who may edit it is shown the credentials in its config. Others are shown `[redacted]`; sent
    back, it keeps them.
    """

    id: Id
    workspace_id: Id
    item_id: Id
    key: str
    label: str
    kind: ActionKind
    config: JsonObject
    enabled: bool
    created_at: Moment
    updated_at: Moment


class ActionList(Listed):
    actions: list[ActionDetail]
