"""Every operation shows its body and its answer, and what it shows is what the platform does.

`make examples` records them anew.
"""

import json
import os
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any

import pytest
import pytest_asyncio
from jsonschema_rs import Draft202012Validator, Registry
from sqlalchemy import select

from cli.supervisor.development import DevelopmentIssuer
from models.people.request_logs import request_log
from runtime.configuration.sections import ProviderSettings
from runtime.configuration.settings import Settings
from tests.contract.callers import caller_of
from tests.contract.catalogue import EXAMPLES
from tests.contract.conftest import Furnishing
from tests.contract.furnished import Furnished
from tests.contract.operations import Operation, call, example_body, operations
from tests.contract.recording import FILE, deviations, sendable, shown, shown_answer
from tests.support.authorization_server import (
    CLIENT_ID,
    CLIENT_SECRET,
    AuthorizationServer,
    authorization_server,
)
from tests.support.cells import cells
from tests.support.client import closed
from tests.support.document import DOCUMENT
from tests.support.patience import eventually
from tests.support.postgres import emptied

pytestmark = pytest.mark.takes(seconds=30)

RECORDING = "RECORD_EXAMPLES" in os.environ
JSON = "application/json"

WITHOUT_ANSWER = {
    "open_realtime_stream": "an event stream",
    "watch_run": "an event stream",
    "watch_source_run": "an event stream",
    "watch_legacy_import": "an event stream",
    "get_asset": "the bytes of a file",
    "head_asset": "the headers of a file",
    "download_shared_file": "the bytes of a file",
    "get_shared_calendar": "a calendar",
}
"""Operations whose answer is no JSON, and what it is."""
WITHOUT_BODY = {"upload_file": "the bytes of a file"}

EARLY = (
    *("list_request_logs", "list_workspace_audit_log"),
    *("replace_home_layout", "register_push_device", "choose_oauth_client_workspace"),
)
"""Calls before all others: what was called, and what reads then show."""
SETTLED = {
    "get_automation_run": "succeeded",
    "get_import": "succeeded",
    "get_export": "succeeded",
    "get_workspace_export": "succeeded",
}
"""Reads that show work which is done, and its state then."""
AFTERWARDS = {
    *("get_run", "list_automation_node_runs", "list_automation_runs"),
    *("list_workspace_automation_runs", "list_workspace_exports"),
}
"""Further reads that show it."""
MADE = {"import_resource": ("resourceImportId", "job"), "mount_resource": ("mountId", "mount")}
"""What later calls are about, and the part of the answer that it is."""


def described(operation: Operation) -> Any:
    return DOCUMENT["paths"][operation.path][operation.method]


def body_of(operation: Operation) -> Mapping[str, Any]:
    """What the document says of a JSON body; empty for none."""
    found: Mapping[str, Any] = described(operation).get("requestBody", {}).get("content", {})
    return found.get(JSON, {})


def answer_of(operation: Operation) -> Mapping[str, Any]:
    """What it says of the first answer that has a shape."""
    return next(answers_of(operation), {})


def answers_of(operation: Operation) -> Iterator[Mapping[str, Any]]:
    """What it says of every success that has a shape."""
    for status, answer in sorted(described(operation)["responses"].items()):
        shown_there = answer.get("content", {}).get(JSON, {})
        if status < "300" and "schema" in shown_there:
            yield shown_there


# ---- what the document shows


def test_every_operation_shows_its_body_and_its_answer() -> None:
    bodies = {one.id for one in operations() if "requestBody" in described(one)}
    shown_bodies = {one.id for one in operations() if "example" in body_of(one)}
    shown_answers = {one.id for one in operations() if "example" in answer_of(one)}
    assert bodies - shown_bodies == WITHOUT_BODY.keys()
    assert {one.id for one in operations()} - shown_answers == WITHOUT_ANSWER.keys()
    bare = {one.id for one in operations() if any("example" not in a for a in answers_of(one))}
    assert bare == set()


def test_no_list_and_no_body_is_shown_empty() -> None:
    lists = [one for one in operations() if one.id.startswith("list_")]
    shown_data = {one.id: answer_of(one)["example"]["data"] for one in lists}
    assert [name for name, data in shown_data.items() if [] in [data, *_values(data)]] == []
    bare = {one.id for one in operations() if body_of(one).get("example") == {}}
    assert bare == {"create_workspace_export"}, "a body with keys that can be shown"


def _values(data: Any) -> Iterable[Any]:
    return data.values() if isinstance(data, dict) else []


def test_nothing_of_the_machine_is_shown() -> None:
    text = FILE.read_text()
    assert str(FILE.parents[3]) not in text
    places = r"/(?:home|root|tmp|var|Users)/|file:|127\.0\.0\.1|localhost"
    secrets = r"(?:whsec|svc_sk)_(?!example\b)|eyJ|\b(?!0{64}\b)[\w+-]{40,}"
    assert re.findall(f"{places}|{secrets}", text) == []


def test_each_example_is_valid() -> None:
    components = {**DOCUMENT["components"], "schemas": closed(DOCUMENT["components"]["schemas"])}
    registry = Registry([("urn:openapi", {"components": components})])
    with cells() as cell:
        for operation in operations():
            for part in (body_of(operation), answer_of(operation)):
                if part.get("schema"):
                    with cell(operation.id):
                        schema = json.loads(
                            json.dumps(part["schema"]).replace('"#/', '"urn:openapi#/')
                        )
                        validator = Draft202012Validator(
                            schema, registry=registry, validate_formats=True
                        )
                        validator.validate(part["example"])


# ---- and what the platform does


@pytest.fixture(scope="module")
def recorded() -> Iterator[dict[str, Any]]:
    """What the calls of this module show; written down at its end when it is recorded."""
    found: dict[str, Any] = {}
    yield found
    if RECORDING:
        lines = [
            f"{json.dumps(one.id)}: {json.dumps(found[one.id], ensure_ascii=False)}"
            for one in operations()
            if one.id in found
        ]
        FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


Recorded = dict[str, Any]


async def holds(
    operation: Operation, made: Furnished, issuer: DevelopmentIssuer, recorded: Recorded
) -> Any:
    """Make the call that is shown: it is answered as is shown. Gives the data of the answer."""
    body = example_body(operation, made)
    if not RECORDING and "example" in body_of(operation):
        body = sendable(body_of(operation)["example"], made)
    answer = await call(caller_of(made, operation, issuer), operation, made, body=body)
    assert answer.is_success, answer.text
    found = shown_answer(answer.json(), made, operation.id, body)
    if RECORDING:
        sent = {"body": shown(body, made)} if body_of(operation) else {}
        recorded[operation.id] = {**sent, "answer": found}
    else:
        assert list(deviations(found, answer_of(operation)["example"])) == []
    return answer.json()["data"]


async def is_logged(made: Furnished) -> bool:
    """True once the log of requests, which follows them, has the last call that furnishes."""
    last = select(request_log.c.id).where(request_log.c.path == f"{made.space.path}/changes")
    async with made.space.database.reading() as work:
        return await work.first(last) is not None


def removes(operation: Operation) -> bool:
    return operation.method == "delete" or EXAMPLES[operation.id].ends


ANSWERING = [one for one in operations() if one.id not in WITHOUT_ANSWER]
DONE = sorted(
    (one for one in ANSWERING if one.id in {*SETTLED, *AFTERWARDS} or EXAMPLES[one.id].works),
    key=lambda one: list(EXAMPLES).index(one.id),
)
"""What shows the work of workers, in an order in which it can be called."""
AT_REST = [one for one in ANSWERING if one not in DONE]
"""The others, which are called where no worker changes what they answer."""


@pytest.mark.long
async def test_each_example_is_answered(
    database_url: str, furnished: Furnishing, issuer: DevelopmentIssuer, recorded: Recorded
) -> None:
    emptied(database_url)
    made = await furnished()
    await eventually(lambda: is_logged(made), what="the last call in the log")
    with cells() as cell:
        for operation in sorted(AT_REST, key=lambda one: (one.id not in EARLY, not one.reads)):
            if not removes(operation):
                with cell(operation.id):
                    await holds(operation, made, issuer, recorded)


@pytest.mark.long
async def test_each_example_that_removes_something_is_answered(
    database_url: str, furnished: Furnishing, issuer: DevelopmentIssuer, recorded: Recorded
) -> None:
    """One workspace after another: a call that misses what went before is made in the next."""
    emptied(database_url)
    made = await furnished()
    with cells() as cell:
        # What stands deeper comes first in the document's reverse order.
        for operation in reversed([one for one in AT_REST if removes(one)]):
            with cell(operation.id):
                try:
                    await holds(operation, made, issuer, recorded)
                except AssertionError:
                    made = await furnished()
                    await holds(operation, made, issuer, recorded)


@pytest.mark.long
async def test_each_example_that_waits_for_work_is_answered(
    platform: Furnished,
    issuer: DevelopmentIssuer,
    registered: AuthorizationServer,
    recorded: Recorded,
) -> None:
    wanted = {"provider": "google_drive", "label": "Our drive"}
    started = await platform.post(f"{platform.space.path}/integrations/oauth/start", wanted)
    platform.secrets |= await registered.consent(started["authorizationUrl"])
    with cells() as cell:
        for operation in DONE:
            with cell(operation.id):
                await _settled(operation, platform, issuer)
                data = await holds(operation, platform, issuer, recorded)
                if operation.id in MADE:
                    name, part = MADE[operation.id]
                    platform.ids[name] = data[part]["id"]


@pytest_asyncio.fixture
async def registered(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[AuthorizationServer]:
    """A provider that the platform is registered at."""
    async with authorization_server() as provider:
        known = {
            "clientId": CLIENT_ID,
            "clientSecret": CLIENT_SECRET,
            "authorizationUrl": f"{provider.url}/authorize",
            "tokenUrl": f"{provider.url}/token",
        }
        registered = ProviderSettings.model_validate(known)
        monkeypatch.setitem(settings.providers, "google_drive", registered)
        yield provider


async def _settled(operation: Operation, made: Furnished, issuer: DevelopmentIssuer) -> None:
    """Wait until the work that an operation shows has come to its end."""

    async def ended() -> bool:
        answer = await call(caller_of(made, operation, issuer), operation, made)
        return bool(answer.json()["data"]["status"] == SETTLED[operation.id])

    if operation.id in SETTLED:
        await eventually(ended, what=f"the end of what {operation.id} shows")
