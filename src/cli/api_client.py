"""Calls of one workspace of a running platform: HTTP with an API key, as any client."""

from pathlib import Path
from typing import Any, Self

import httpx2

from cli.console import StartError
from cli.supervisor.state import StateDir, no_platform, read_object

Json = dict[str, Any]


class RefusedError(StartError):
    """The API refused a call; the message is its own."""


class ApiClient:
    """Every refusal is a RefusedError, and an API that does not answer a StartError."""

    def __init__(self, base_url: str, api_key: str, workspace_id: str) -> None:
        self.base_url = base_url
        self.http = httpx2.AsyncClient(
            base_url=base_url,
            headers={"Authorization": f"Bearer {api_key}"},
            trust_env=False,
            timeout=30,
        )
        self.workspace = f"/v1/workspaces/{workspace_id}"

    async def changes(self, method: str, path: str, json: Json) -> Json:
        """The changes that a call would make. Raises RefusedError and StartError."""
        tried = {"json": json, "headers": {"Prefer": "dry-run"}}
        changes: Json = (await self._answer(method, path, tried))["changes"]
        return changes

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self.http.aclose()

    async def call(self, method: str, path: str, **given: Any) -> Any:
        """The `data` of the answer. Raises RefusedError and StartError."""
        return (await self._answer(method, path, given))["data"]

    async def _answer(self, method: str, path: str, options: Json) -> Json:
        try:
            answer = await self.http.request(method, path, **options)
        except (httpx2.TransportError, httpx2.InvalidURL, httpx2.UnsupportedProtocol):
            raise StartError(f"Can't reach the platform at {self.base_url}.") from None
        return read(answer)


def read(answer: httpx2.Response) -> Json:
    """The body of an answer. Raises RefusedError with what the API said."""
    try:
        body = answer.json()
    except ValueError:
        raise RefusedError(f"{answer.url} returned status {answer.status_code}.") from None
    if answer.is_error:
        raise RefusedError(body.get("message", f"The API returned status {answer.status_code}."))
    document: Json = body
    return document


async def api_client(state_dir: Path, url: str | None, api_key: str | None) -> ApiClient:
    """A client of the platform at `url`, else of the one that runs on the state directory.

    Raises StartError when there is none, and RefusedError for a key that it does not know.
    """
    connection = {} if url and api_key else _connection(state_dir)
    base_url = (url or connection["baseUrl"]).rstrip("/")
    key = api_key or connection["apiKey"]
    if not base_url.startswith(("http://", "https://")):
        raise StartError(f"Invalid URL {base_url}. Enter a URL such as http://127.0.0.1:8000.")
    client = ApiClient(base_url, key, "")
    try:
        entries = (await client.call("GET", "/v1/workspaces"))["workspaces"]
    finally:
        await client.close()
    if len(entries) != 1:
        raise StartError("Use an API key of a workspace, not a session token.")
    return ApiClient(base_url, key, entries[0]["workspace"]["id"])


def _connection(state_dir: Path) -> Json:
    state = StateDir(state_dir)
    connection = read_object(state.connection) if state.is_owned() else {}
    if not connection:
        raise no_platform(state.root, "use --url and --api-key")
    return connection
