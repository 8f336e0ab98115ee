"""Every operation that writes is tried: it answers as it would, changes nothing, and then does so.

The effect of the real request is that of its dry run: the same kinds of resources change.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from sqlalchemy import text

from cli.supervisor.development import DevelopmentIssuer
from models.tables import metadata
from models.workspace.changes.differences import REPORTED
from runtime.configuration.settings import Settings
from tests.contract.callers import caller_of
from tests.contract.catalogue import EXAMPLES
from tests.contract.conftest import Furnishing
from tests.contract.furnished import Furnished
from tests.contract.operations import Operation, call, example_body, operations
from tests.support.cells import cells
from tests.support.client import Client
from tests.support.document import DOCUMENT
from tests.support.watched import WatchedDatabase

pytestmark = [pytest.mark.takes(seconds=60), pytest.mark.long]

WORK = 202
_OF_REQUESTS: Mapping[str, tuple[str, ...]] = {
    "request_log": (),
    "api_key": ("last_used_at",),
    "browser_session": (),
}
"""Tables, or columns of them, that say that requests were made."""


def _prefers(operation: Operation) -> bool:
    parameters = DOCUMENT["paths"][operation.path][operation.method].get("parameters", ())
    return any(one["name"] == "Prefer" and "dry-run" in one["description"] for one in parameters)


WRITING = [one for one in operations() if _prefers(one)]
UNSUPPORTED = [
    one for one in operations() if one.method not in {"get", "head"} and one not in WRITING
]


def removes(operation: Operation) -> bool:
    """True for a call that takes away what further calls would need."""
    return operation.method == "delete" or EXAMPLES[operation.id].ends


async def digests(database: WatchedDatabase, columns: Mapping[str, Any] | None = None) -> Any:
    """A digest of each table, or of these columns of some tables."""
    parts = []
    for table in metadata.sorted_tables:
        if columns is not None and table.name not in columns:
            continue
        hidden = _OF_REQUESTS.get(table.name)
        if hidden == ():
            continue
        row = "(to_jsonb(one)" + "".join(f" - '{name}'" for name in hidden or ()) + ")"
        if columns is not None:
            names = ", ".join(f"'{name}', one.{name}" for name in columns[table.name])
            row = f"jsonb_build_object({names})"
        digest = f"md5(string_agg({row}::text, '' ORDER BY {row}::text)) AS digest"
        statement = f"SELECT '{table.name}' AS name, {digest} FROM {table.name} AS one"  # noqa: S608  # of our own tables
        parts.append(statement)
    async with database.transaction() as work:
        rows = await work.rows(text(" UNION ALL ".join(parts)))
    return {row.name: row.digest for row in rows}


def stored(settings: Settings) -> Mapping[str, Any]:
    """The objects of the store."""
    directory = Path(urlsplit(settings.object_store).path)
    return {str(path): None for path in directory.rglob("*") if path.is_file()}


def shown_columns() -> Mapping[str, Any]:
    """For each kind, its key, the columns that a dry run shows, and its place in the trash."""
    return {
        name: [
            column.name
            for column in metadata.tables[name].columns
            if column.primary_key or column.name in {*kind.columns, "deleted_at"}
        ]
        for name, kind in REPORTED.items()
    }


async def tried(
    caller: Client, made: Furnished, operation: Operation, body: Any
) -> httpx2.Response:
    return await call(caller, operation, made, headers={"Prefer": "dry-run"}, body=body)


async def test_a_dry_run_of_every_operation_leaves_every_table_as_it_is(
    own: Furnished, issuer: DevelopmentIssuer, database: WatchedDatabase, settings: Settings
) -> None:
    with cells() as named:
        for operation in WRITING:
            with named(operation.id):
                # The first request in a session stores the profile of its user.
                caller = caller_of(own, operation, issuer)
                await caller.get("/v1/me")
                before = {**await digests(database), **stored(settings)}
                answer = await tried(caller, own, operation, example_body(operation, own))
                after = {**await digests(database), **stored(settings)}
                changed = before.items() ^ after.items()
                assert not changed
                if EXAMPLES[operation.id].works and not answer.is_success:
                    assert answer.status_code < 500, answer.text
                    continue
                assert answer.is_success, answer.text
                assert answer.headers["Preference-Applied"] == "dry-run"
                expected = {operation.success, WORK} | (
                    {202, 200} if EXAMPLES[operation.id].works else set()
                )
                assert answer.status_code in expected, answer.text
                assert "changes" in answer.json()


async def test_operations_that_cannot_be_tried_refuse(own: Furnished) -> None:
    assert {one.access["credential"] for one in UNSUPPORTED} <= {"none"}
    with cells() as named:
        for operation in UNSUPPORTED:
            with named(operation.id):
                body = example_body(operation, own)
                headers = {"Prefer": "dry-run"}
                answer = await call(own.client, operation, own, headers=headers, body=body)
                assert answer.status_code == 422, answer.text
                assert answer.json()["error"] == "dry_run_unsupported"


def masked(value: Any) -> Any:
    """A document without ids, moments, secrets and durations, of which each call makes its own."""
    if isinstance(value, dict):
        return {key: masked(one) for key, one in value.items() if not key.endswith("Ms")}
    if isinstance(value, list):
        return [masked(one) for one in value]
    return type(value).__name__ if isinstance(value, str) else value


async def test_a_request_does_what_its_dry_run_said(
    furnished: Furnishing, issuer: DevelopmentIssuer, database: WatchedDatabase
) -> None:
    columns = shown_columns()
    made = await furnished()
    with cells() as named:
        for operation in sorted(WRITING, key=removes):
            if EXAMPLES[operation.id].works:
                continue
            with named(operation.id):
                body, caller = example_body(operation, made), caller_of(made, operation, issuer)
                answer = await tried(caller, made, operation, body)
                if not answer.is_success:
                    made = await furnished()
                    body, caller = example_body(operation, made), caller_of(made, operation, issuer)
                    answer = await tried(caller, made, operation, body)
                assert answer.is_success, answer.text
                before = await digests(database, columns)
                real = await call(caller, operation, made, body=body)
                after = await digests(database, columns)
                assert real.is_success, real.text
                assert real.status_code == answer.status_code
                assert masked(real.json()["data"]) == masked(answer.json()["data"])
                changed = {name for name in after if after[name] != before[name]}
                told = {one["kind"] for one in answer.json()["changes"]["counts"]}
                assert told == changed, json.dumps(answer.json()["changes"])
