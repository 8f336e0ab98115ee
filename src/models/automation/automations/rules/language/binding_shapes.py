"""The types of bindings on the wire (decisions C8, Bindings)."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field
from typing_extensions import TypeAliasType

from models.core.base import Input, JsonObject, example
from models.core.values import children

Value = TypeVar("Value")

MAX_DEPTH = 64


def bounded_depth(value: Value) -> Value:
    """Refuse nesting that is too deep for readers of a config."""
    level: Iterable[object] = [value]
    for _ in range(MAX_DEPTH):
        level = [child for item in level for child in children(item)]
        if not level:
            return value
    raise ValueError(f"is nested deeper than {MAX_DEPTH} levels")


class _Binding(Input):
    def to_json(self) -> JsonObject:
        """The binding as `bindings.resolve` reads it."""
        return self.model_dump()


class LiteralBinding(_Binding):
    """The value as it stands, even if it looks like a binding."""

    model_config = example({"type": "literal", "value": {"type": "node", "value": "just text"}})

    type: Literal["literal"]
    value: Annotated[Any, AfterValidator(bounded_depth)]


class TriggerBinding(_Binding):
    """A path into the payload of the trigger; null where the payload has nothing."""

    model_config = example({"type": "trigger", "value": "record.data.price"})

    type: Literal["trigger"]
    value: str


class NodeBinding(_Binding):
    """A path into the output of an earlier node; it begins with the id of the node."""

    model_config = example({"type": "node", "value": "fetch.body.items[0].name"})

    type: Literal["node"]
    value: str


class ItemBinding(_Binding):
    """A path into the item of the loop around the node; `$index` counts from 0."""

    model_config = example({"type": "item", "value": "data.email"})

    type: Literal["item"]
    value: str


class RunBinding(_Binding):
    """A fact of the run: `id`, `startedAt`, `source`, `workspaceId` or `resumeUrl`."""

    model_config = example({"type": "run", "value": "id"})

    type: Literal["run"]
    value: str


class VariableBinding(_Binding):
    """A path into a variable of the graph; it begins with the key of the variable."""

    model_config = example({"type": "variable", "value": "limits.daily"})

    type: Literal["variable"]
    value: str


class SecretBinding(_Binding):
    """A secret of the workspace by its name, for nodes that send it elsewhere.

    Only the kinds http_request, send_email and send_webhook take it. It is never logged and never
    shown in inputs, outputs or errors.
    """

    model_config = example({"type": "secret", "value": "shop_api_token"})

    type: Literal["secret"]
    value: str


class TemplateBinding(_Binding):
    """Text in which every `{{ … }}` is a CEL expression."""

    model_config = example({"type": "template", "value": "Hello {{ trigger.name }}!"})

    type: Literal["template"]
    value: str


class ExpressionBinding(_Binding):
    """The result of a CEL expression."""

    model_config = example({"type": "expression", "value": "double(trigger.price) * 1.19"})

    type: Literal["expression"]
    value: str


Binding = TypeAliasType(
    "Binding",
    Annotated[
        LiteralBinding
        | TriggerBinding
        | NodeBinding
        | ItemBinding
        | RunBinding
        | VariableBinding
        | SecretBinding
        | TemplateBinding
        | ExpressionBinding,
        Field(
            discriminator="type",
            description="Where a value comes from. In a config it may stand in place of any value.",
        ),
    ],
)
