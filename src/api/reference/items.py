"""The bodies of new items: what `config` or `content` of each kind is."""

from collections.abc import Mapping

from pydantic import BaseModel
from pydantic.alias_generators import to_pascal

from api.reference.kinds import ByKind
from api.reference.schemas import Schema
from models.content.items.rules import ItemKind
from models.content.surfaces.shapes import SurfaceContent
from models.data.forms.shapes import CreateForm
from models.data.views.shapes import ItemViewConfig
from models.sources.mounts.shapes import CreateMount
from models.workspace.targets.commands.factories import OWNED, WITH_CONTENT
from models.workspace.targets.shapes import FileItemConfig

CONFIGS: Mapping[ItemKind, type[BaseModel]] = {
    ItemKind.VIEW: ItemViewConfig,
    ItemKind.FORM: CreateForm,
    ItemKind.FILE: FileItemConfig,
    ItemKind.EXTERNAL_RESOURCE: CreateMount,
}
"""The configs that are bodies of their own."""


def item_configs(bodies: Mapping[str, Schema]) -> dict[str, Schema]:
    """The other configs: the body that creates the target, without what its item says."""
    return {
        _config(kind): _without(bodies[f"Create{to_pascal(kind)}"], owned, _config(kind))
        for kind, owned in OWNED.items()
    }


def items_by_kind() -> ByKind:
    """The body of create item by its kind."""
    configs: dict[str, str | None] = dict.fromkeys(ItemKind)
    configs |= dict.fromkeys(WITH_CONTENT, SurfaceContent.__name__)
    configs |= {kind.value: model.__name__ for kind, model in CONFIGS.items()}
    configs |= {kind.value: _config(kind) for kind in OWNED}
    content = {kind.value: "content" for kind in WITH_CONTENT}
    name = "Create{}Item".format
    return ByKind("CreateItem", "config", configs, name, elsewhere=content, needed=True)


def _config(kind: ItemKind) -> str:
    return f"{to_pascal(kind)}ItemConfig"


def _without(body: Schema, owned: tuple[str, ...], title: str) -> Schema:
    properties = {key: one for key, one in body["properties"].items() if key not in owned}
    # An automation without a graph begins with an empty one.
    required = [key for key in body.get("required", []) if key not in {*owned, "graph"}]
    given = {key: one for key, one in body.items() if key not in {"required", "examples"}}
    return {**given, "title": title, "properties": properties} | (
        {"required": required} if required else {}
    )
