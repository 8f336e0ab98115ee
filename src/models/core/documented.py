"""What the OpenAPI document says of values that are read apart from the body they stand in."""

from pydantic import WithJsonSchema

REFERENCE = "x-documented-as"
"""Stands where the document refers to a component; whoever makes the document resolves it."""


def documented_as(*components: str) -> WithJsonSchema:
    """Say that a free JSON value is one of these components; it is validated elsewhere."""
    references = [{REFERENCE: name} for name in components]
    return WithJsonSchema(references[0] if len(references) == 1 else {"anyOf": references})
