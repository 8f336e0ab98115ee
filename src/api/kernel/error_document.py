"""The OpenAPI document of refusals: one schema of each error class, and unions of those."""

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic.alias_generators import to_pascal

from api.kernel.responses import ErrorBody, ValidationErrorBody
from runtime.errors import PlatformError, ValidationError

PREFIX = "#/components/schemas/"

Refusal = type[PlatformError]


def error_components(groups: Iterable[Sequence[Refusal]]) -> dict[str, Any]:
    """The schemas of these errors, of each group that is answered with one status, and of all.

    Errors of one code are one to clients, whatever their classes are called here.
    """
    groups = list(groups)
    by_code = {refusal.code: refusal for group in groups for refusal in group}
    refusals = [by_code[code] for code in sorted(by_code)]
    schemas: dict[str, Any] = {}
    for refusal in refusals:
        schemas |= _one(refusal)
    for group in groups:
        if len(group) > 1:
            schemas[union_name(group)] = _union(union_name(group), group)
    return {**schemas, "Error": _union("Error", refusals)}


def union_name(refusals: Sequence[Refusal]) -> str:
    """The component of refusals in the order of their codes; of one, that of its class."""
    if len(refusals) == 1:
        return _name(refusals[0])
    return "Or".join(to_pascal(refusal.code) for refusal in refusals)


def _name(refusal: Refusal) -> str:
    """The tag of an error; where a rule has a code of its own beside others of its tag, that."""
    by_tag = next(vars(one) for one in refusal.__mro__ if "tag" in vars(one))
    return refusal.tag if refusal.code == by_tag["code"] else f"Api{to_pascal(refusal.code)}"


def _one(refusal: Refusal) -> dict[str, Any]:
    body = ValidationErrorBody if issubclass(refusal, ValidationError) else ErrorBody
    schema = body.model_json_schema(ref_template=PREFIX + "{model}", mode="serialization")
    parts: dict[str, Any] = schema.pop("$defs", {})
    fixed = {"_tag": refusal.tag, "error": refusal.code, "status": refusal.status}
    properties = {
        key: {**part, "const": fixed[key]} if key in fixed else part
        for key, part in schema["properties"].items()
    }
    text = " ".join((refusal.__doc__ or "").split())
    described = {"title": _name(refusal), "description": f"{text} {refusal.advice}".strip()}
    return {**parts, _name(refusal): {**schema, **described, "properties": properties}}


def _union(title: str, refusals: Sequence[Refusal]) -> dict[str, Any]:
    """Any of these errors, told apart by tag, or by code where two have one tag."""
    names = [_name(refusal) for refusal in refusals]
    tags = [refusal.tag for refusal in refusals]
    key = "_tag" if len(set(tags)) == len(tags) else "error"
    values = tags if key == "_tag" else [refusal.code for refusal in refusals]
    return {
        "title": title,
        "oneOf": [{"$ref": PREFIX + name} for name in names],
        "discriminator": {
            "propertyName": key,
            "mapping": {value: PREFIX + name for value, name in zip(values, names, strict=True)},
        },
    }
