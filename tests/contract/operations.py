"""The operations of the OpenAPI document, and how to call one of them."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx2

from tests.contract.catalogue import EXAMPLES
from tests.contract.furnished import Furnished
from tests.support.client import Client
from tests.support.document import DOCUMENT


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation as the document describes it."""

    id: str
    tag: str
    method: str
    path: str
    access: Mapping[str, Any]
    success: int
    is_forced: bool
    """True for a deletion that is refused while others name the thing, unless it is forced."""

    @property
    def parameters(self) -> list[str]:
        return re.findall(r"{(\w+)}", self.path)

    @property
    def ids(self) -> list[str]:
        return [name for name in self.parameters if name.endswith("Id")]

    @property
    def reads(self) -> bool:
        return self.method == "get"


@cache
def operations() -> list[Operation]:
    """Every operation, in the order of the document."""
    return [
        Operation(
            id=described["operationId"],
            tag=described["tags"][0],
            method=method,
            path=path,
            access=described["x-access"],
            success=_success(described["responses"]),
            is_forced="force" in {one.get("name") for one in described.get("parameters", [])},
        )
        for path, methods in DOCUMENT["paths"].items()
        for method, described in methods.items()
    ]


def _success(responses: Mapping[str, Any]) -> int:
    """The lowest status of a success, of those with a shape where any has one."""
    successes = {int(status): one for status, one in responses.items() if status < "300"}
    shaped = [status for status, one in successes.items() if '"schema"' in json.dumps(one)]
    return min(shaped or successes)


def called(ids: Mapping[str, str], operation: Operation, made: Furnished) -> str:
    """The path with these ids; what is not among them is the furnished workspace's own."""
    renamed = EXAMPLES[operation.id].ids.items()
    own = {parameter: made.ids[name] for parameter, name in renamed}
    known = {**made.ids, **made.secrets, **own, **ids}
    return re.sub(r"{(\w+)}", lambda found: known[found.group(1)], operation.path)


async def call(
    client: Client,
    operation: Operation,
    made: Furnished,
    *,
    ids: Mapping[str, str] | None = None,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    query: Mapping[str, str] | None = None,
) -> httpx2.Response:
    """Make the example call of an operation, perhaps with other ids or body, and further parts."""
    example = EXAMPLES[operation.id]
    force = {"force": "true"} if operation.is_forced else {}
    options: dict[str, Any] = {
        "params": {**force, **example.query(made), **(query or {})},
        "headers": {**example.headers(made), **(headers or {})},
    }
    if example.content is not None:
        options["content"] = example.content
    elif body is not None or example.body is not None:
        sent = body if body is not None else example_body(operation, made)
        options["content"] = json.dumps(sent).encode()
        options["headers"]["Content-Type"] = "application/json"
    path = called(ids or {}, operation, made)
    return await client.request(operation.method.upper(), path, **options)


def example_body(operation: Operation, made: Furnished) -> Any:
    """The body of the example call, or None."""
    example = EXAMPLES[operation.id]
    return None if example.body is None else example.body(made)
