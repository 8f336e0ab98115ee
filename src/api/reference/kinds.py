"""Bodies whose key `kind` says what another of their keys holds, as one shape for each kind."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pydantic.alias_generators import to_pascal

from api.reference.schemas import PREFIX, Schema, ref


@dataclass(frozen=True, slots=True)
class ByKind:
    """`part` of a body is one of these components, by the kind that stands beside it.

    `name` makes the name of the shape of a kind. With `partial`, a config may also be unfinished.
    `by` is the key of the kind. A kind without a config has no such part. `elsewhere` has the part
    of the kinds whose config stands under another key. With `needed`, a part cannot be left out
    when its config has keys that are required.
    """

    body: str
    part: str
    configs: Mapping[str, str | None]
    name: Callable[[str], str]
    partial: bool = False
    by: str = "kind"
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    needed: bool = False

    def shapes(self, schemas: Mapping[str, Schema]) -> dict[str, Schema]:
        """The shapes, and the body as their union."""
        body = schemas[self.body]
        groups: dict[str | None, list[str]] = {}
        for kind, config in self.configs.items():
            groups.setdefault(config, []).append(kind)
        names = {config: self.name(_spelled(config, kinds)) for config, kinds in groups.items()}
        shapes = {
            names[config]: self._shape(names[config], body, config, kinds, schemas)
            for config, kinds in groups.items()
        }
        clashes = shapes.keys() & schemas.keys()
        if clashes:
            raise RuntimeError(f"The document has these components already: {sorted(clashes)}.")
        mapping = {kind: PREFIX + names[config] for kind, config in self.configs.items()}
        union: Schema = {
            "title": body["title"],
            "oneOf": [ref(name) for name in shapes],
            "discriminator": {"propertyName": self.by, "mapping": mapping},
        }
        if "description" in body:
            union["description"] = body["description"]
        return {**shapes, self.body: union}

    def _shape(  # the parts of a shape
        self,
        name: str,
        body: Schema,
        config: str | None,
        kinds: list[str],
        schemas: Mapping[str, Schema],
    ) -> Schema:
        kind: Schema = {"type": "string"}
        kind |= {"const": kinds[0]} if len(kinds) == 1 else {"enum": kinds}
        shape = {key: one for key, one in body.items() if key != "examples"}
        shape["title"] = name
        parts = {self.part, *self.elsewhere.values()}
        kept = {key: one for key, one in body["properties"].items() if key not in parts}
        shape["properties"] = {**kept, self.by: kind}
        if config is None:
            return shape
        part = self.elsewhere.get(kinds[0], self.part)
        if self.needed and schemas[config].keys() & {"required", "oneOf"}:
            shape["properties"][part] = ref(config)
            shape["required"] = [*shape["required"], part]
        else:
            shape["properties"][part] = self._config(config, body["properties"][part])
        described = schemas[config].get("description")
        if described is not None:
            shape["description"] = described
        return shape

    def _config(self, config: str, was: Schema) -> Schema:
        options = [ref(config)]
        if self.partial:
            options.append(ref("PartialConfig"))
        if {"type": "null"} in was.get("anyOf", []):
            options.append({"type": "null"})
        return options[0] if len(options) == 1 else {"anyOf": options}


def _spelled(config: str | None, kinds: list[str]) -> str:
    """The name of a shape: by its kind, or by the config that several kinds share."""
    if config is None or len(kinds) == 1:
        return to_pascal(kinds[0])
    return config.removesuffix("Settings").removesuffix("Config").removesuffix("Content")
