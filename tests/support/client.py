"""An HTTP client that checks every answer against the OpenAPI document."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import httpx2
from jsonschema_rs import Draft202012Validator, Registry
from typing_extensions import override

_COMMON = {401, 404, 405, 429, 503}
"""What may be answered where no operation is, or none that the document shows."""
_PLAIN_HEADERS = frozenset(
    {
        *("content-length", "content-type", "cache-control", "x-content-type-options"),
        *("referrer-policy", "content-security-policy", "cross-origin-resource-policy"),
        *("cross-origin-opener-policy", "vary", "x-accel-buffering"),
    }
)
"""What says nothing of the operation."""
_BYTES = "application/octet-stream"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DOCUMENT = "urn:openapi"
_HOST = "host-of-the-caller.test"
"""Where the client says it is: no answer may repeat it."""
_CLAIMS = {
    "Forwarded": f"for={_HOST};host={_HOST};proto=https",
    **{f"X-Forwarded-{part}": _HOST for part in ("For", "Host", "Server", "Prefix")},
    "X-Forwarded-Proto": "https",
}


class Contract:
    """What the document says an operation may answer."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        components = {
            **document["components"],
            "schemas": closed(document["components"]["schemas"]),
        }
        contents = {"components": components, "paths": closed(document["paths"])}
        self._schemas = Registry([(_DOCUMENT, {"$schema": _DIALECT, **contents})])
        self._refusals: Mapping[str, Any] = document["components"]["responses"]
        self._validators: dict[str, Draft202012Validator] = {}
        # What is written out goes before what a parameter would match.
        self._paths = [
            (_pattern(path), path, document["paths"][path])
            for path in sorted(document["paths"], key=lambda path: path.count("{"))
        ]

    def check(self, method: str, path: str, response: httpx2.Response) -> None:
        """Fail for an answer the document does not describe."""
        assert response.headers["x-request-id"]
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "no-referrer"
        assert _HOST not in f"{response.headers}{response.text}", "it repeats the caller's host"
        if method == "HEAD":
            assert response.content == b""
            return
        declared = self._declared(method, path)
        if declared is None and response.status_code < 400:
            assert not path.startswith("/v1"), f"{method} {path} is not in the document"
        elif declared is None:
            assert response.status_code in _COMMON
            self._check_schema("#/components/schemas/Error", response)
        if declared is None:
            return
        at, responses = declared
        status = str(response.status_code)
        assert status in responses, f"{method} {path} answered {status}: {response.text}"
        place, answer = self._answer(f"{at}/{status}", responses[status])
        declared_headers = {one.lower() for one in answer["headers"]}
        unknown = response.headers.keys() - _PLAIN_HEADERS - declared_headers
        # The response of a node has the headers that its automation gives it.
        by_a_node = path.startswith("/v1/hooks/") and status < "400"
        assert by_a_node or not unknown, f"{method} {path} answered {status} with {unknown}"
        content = answer.get("content", {})
        media_type = response.headers.get("content-type", "").partition(";")[0]
        # A file is bytes of the type it was stored with.
        known = media_type in content or _BYTES in content or not response.content
        assert known, f"{method} {path} answered {status} as {media_type}"
        if media_type == "application/json" and content["application/json"].get("schema"):
            self._check_schema(f"{place}/content/application~1json/schema", response)

    def _answer(self, place: str, declared: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """The answer itself, where refusals refer to what is the same for many operations."""
        name = declared.get("$ref", "").rpartition("/")[2]
        return (declared["$ref"], self._refusals[name]) if name else (place, declared)

    def _declared(self, method: str, path: str) -> tuple[str, Mapping[str, Any]] | None:
        """The responses of an operation, and their place in the document."""
        for pattern, written, operations in self._paths:
            if method.lower() in operations and pattern.fullmatch(path):
                escaped = quote(written.replace("/", "~1"))
                place = f"#/paths/{escaped}/{method.lower()}/responses"
                return place, operations[method.lower()]["responses"]
        return None

    def _check_schema(self, reference: str, response: httpx2.Response) -> None:
        if reference not in self._validators:
            self._validators[reference] = Draft202012Validator(
                {"$ref": _DOCUMENT + reference}, registry=self._schemas, validate_formats=True
            )
        self._validators[reference].validate(response.json())


class Client(httpx2.AsyncClient):
    """A client with a bearer token whose every answer is held against the contract."""

    def __init__(self, app: Any, contract: Contract, token: str | None) -> None:
        super().__init__(
            transport=httpx2.ASGITransport(app=app),
            base_url=f"http://{_HOST}",
            headers=_CLAIMS if token is None else {"Authorization": f"Bearer {token}", **_CLAIMS},
        )
        self._app = app
        self._contract = contract

    def with_token(self, token: str | None) -> "Client":
        """The same application seen by another caller."""
        return Client(self._app, self._contract, token)

    @override
    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        response = await super().send(request, **options)
        await response.aread()
        self._contract.check(request.method, request.url.path, response)
        return response


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"{\w+}", "[^/]+", path))


def closed(schema: Any) -> Any:
    """A schema with no properties beyond those it names, where it does not say otherwise."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        key: one if key in {"example", "examples", "default", "const", "enum"} else closed(one)
        for key, one in schema.items()
    }
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        found.setdefault("additionalProperties", False)
    return found
