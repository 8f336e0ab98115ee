"""Schemas of configs in which a binding may stand in place of any value."""

from collections.abc import Collection, Mapping

from api.reference.schemas import PREFIX, Schema, ref

FILTER_KEYS = frozenset({"field", "op", "timezone", "and", "or", "not"})
"""Keys of a filter that say what it is. Only the value of a test may be a binding."""

_ANY_OBJECT = {"type": "object", "additionalProperties": True}
_ANNOTATIONS = ("description", "default", "examples")


class WithBindings:
    """Rewrites schemas so that a binding is allowed for every value, at any depth.

    A part in `shared` is described without bindings, too, so its copy is named `Bound…`. `fixed`
    are the keys of a component whose value decides something before a run begins.
    """

    def __init__(
        self,
        schemas: Mapping[str, Schema],
        shared: Collection[str],
        fixed: Mapping[str, Collection[str]],
    ) -> None:
        self._schemas = schemas
        self._shared = shared
        self._fixed = fixed
        self.made: dict[str, Schema] = {}

    def component(self, name: str) -> str:
        """The name of the component with bindings, which is made if it has to be."""
        schema = self._schemas[name]
        if name == "Binding" or not {"properties", "items", "anyOf", "oneOf"} & schema.keys():
            return name
        bound = f"Bound{name}" if name in self._shared else name
        if bound not in self.made:
            self.made[bound] = {}  # it may refer to itself
            fixed = self._fixed.get(name, ())
            self.made[bound] = {**self._inside(schema, fixed), "title": bound}
        return bound

    def _value(self, schema: Schema) -> Schema:
        """A value or a binding. What may be anything, or any object, may be a binding already."""
        inside = self._inside(schema)
        known = {key: one for key, one in inside.items() if key not in {*_ANNOTATIONS, "title"}}
        if known in ({}, _ANY_OBJECT):
            return inside
        options = known.pop("anyOf", None) or [known]
        outer = {key: inside[key] for key in _ANNOTATIONS if key in inside}
        return {"anyOf": [*options, ref("Binding")], **outer}

    def _inside(self, schema: Schema, fixed: Collection[str] = ()) -> Schema:
        copy = dict(schema)
        if "$ref" in copy:
            copy["$ref"] = PREFIX + self.component(copy["$ref"].removeprefix(PREFIX))
        for key in ("anyOf", "oneOf"):
            if key in copy:
                copy[key] = [self._inside(part) for part in copy[key]]
        if "discriminator" in copy:
            mapping = copy["discriminator"]["mapping"]
            targets = {
                value: PREFIX + self.component(target.removeprefix(PREFIX))
                for value, target in mapping.items()
            }
            copy["discriminator"] = {**copy["discriminator"], "mapping": targets}
        if "items" in copy:
            copy["items"] = self._value(copy["items"])
        if isinstance(copy.get("additionalProperties"), dict):
            copy["additionalProperties"] = self._value(copy["additionalProperties"])
        if "patternProperties" in copy:
            patterns = copy["patternProperties"].items()
            copy["patternProperties"] = {key: self._value(part) for key, part in patterns}
        if "properties" in copy:
            copy["properties"] = {
                key: self._fixed_part(part) if key in fixed else self._value(part)
                for key, part in copy["properties"].items()
            }
        return copy

    def _fixed_part(self, schema: Schema) -> Schema:
        """A part that is no binding itself; the tests of a filter in it may hold some."""
        copy = dict(schema)
        if "$ref" in copy:
            return self._inside(copy)
        for key in ("anyOf", "oneOf"):
            if key in copy:
                copy[key] = [self._fixed_part(part) for part in copy[key]]
        if "items" in copy:
            copy["items"] = self._fixed_part(copy["items"])
        return copy
