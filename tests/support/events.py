"""The events in the log of a database, held against the OpenAPI document."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import psycopg
from jsonschema_rs import Draft202012Validator, Registry

from tests.support.client import closed
from tests.support.document import DOCUMENT

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DOCUMENT = "urn:openapi"
_SHOWN = 5
WRITTEN_BY_TESTS = frozenset({"word", "words", "number"})
"""The data of events that tests write themselves."""


def check_logged_events(url: str) -> None:
    """Fail for an event whose data is not what the document says of its type."""
    with psycopg.connect(url) as connection:
        logged = connection.execute("SELECT type, data FROM workspace_event").fetchall()
    problems = [
        problem
        for kind, data in logged
        if data.keys().isdisjoint(WRITTEN_BY_TESTS)
        for problem in deviations(kind, data)
    ]
    assert not problems, "\n".join(sorted(set(problems))[:_SHOWN])


def deviations(kind: str, data: Any) -> Iterator[str]:
    """The ways in which the data of an event differ from the schema of its type."""
    for error in described(f"{call_of(kind)}/properties/data").iter_errors(data):
        yield f"{kind} {sorted(data)}: {error.message}"


def call_of(kind: str) -> str:
    """The reference to what the webhook of a type sends."""
    return f"#/webhooks/{kind}/post/requestBody/content/application~1json/schema"


@cache
def described(reference: str) -> Draft202012Validator:
    """What the document says at a reference, with no other keys."""
    schema = {"$ref": _DOCUMENT + reference}
    return Draft202012Validator(schema, registry=_registry(), validate_formats=True)


@cache
def _registry() -> Registry:
    components = {"schemas": closed(DOCUMENT["components"]["schemas"])}
    contents = {"components": components, "webhooks": closed(DOCUMENT["webhooks"])}
    return Registry([(_DOCUMENT, {"$schema": _DIALECT, **contents})])
