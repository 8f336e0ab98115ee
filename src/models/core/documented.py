"""Schemas in the OpenAPI document of values that are read apart from the body they stand in."""

from pydantic import WithJsonSchema

from models.core.base import JsonObject

REFERENCE = "x-documented-as"
"""Stands where the document refers to a component; whoever makes the document resolves it."""


def documented_as(*components: str) -> WithJsonSchema:
    """Say that a free JSON value is one of these components; it is validated elsewhere."""
    references = [{REFERENCE: name} for name in components]
    return WithJsonSchema(references[0] if len(references) == 1 else {"anyOf": references})


ID: JsonObject = {"type": "string", "format": "uuid"}
MOMENT: JsonObject = {"type": "string", "format": "date-time"}
TEXT: JsonObject = {"type": "string"}
COUNT: JsonObject = {"type": "integer"}
FLAG: JsonObject = {"type": "boolean"}


def keys(always: str, /, **properties: JsonObject) -> JsonObject:
    """The schema of an object with these properties; `always` names the required ones."""
    return {"type": "object", "required": always.split(), "properties": properties}


def listed(items: JsonObject) -> JsonObject:
    return {"type": "array", "items": items}


TEMPORAL = keys("workflowId", workflowId=TEXT, uiUrl=TEXT)
"""The execution that carries something out."""
