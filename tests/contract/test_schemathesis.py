"""Generated calls of every operation against a real API process, all of schemathesis's checks on.

Examples, boundary values, fuzzing and sequences of calls. What answers 5xx, breaks the document or
takes what the document forbids fails.
"""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from models.messages.webhook_endpoints import deliveries
from runtime.configuration.settings import Settings
from tests.contract.catalogue import EXAMPLES
from tests.contract.furnished import Furnished
from tests.support.client import closed
from tests.support.engine import running_engine
from tests.support.exploring import examples, exploring
from tests.support.patience import ENOUGH
from tests.support.postgres import emptied
from tests.support.server import serving
from tests.support.temporal import dev_server
from tests.support.watched import WatchedDatabase

pytestmark = [pytest.mark.takes(seconds=90), pytest.mark.long]

EXAMPLES_PER_OPERATION = examples(2, explored=10)
MOST_KINDS = 15
"""Schemas that a body is made of at most, for all of its boundaries to be tried."""
SEED = 20_261_120
"""Generation follows it, so that a failure comes again."""

# These would end the credential or the workspace of the whole session.
ENDING = ("delete_workspace", "revoke_api_key", "remove_member", "update_member")
# Their bodies are made of the configs that create_automation is called with, or hold them: that one
# is called with each of the hundreds of examples of triggers and nodes.
SAME_BODY = (
    "create_item",
    *(() if exploring() else ("create_action",)),
    "update_action",
    "update_automation",
    "import_automation",
    "validate_automation",
    "propose_changes",
    "create_ai_run",
)
CHOSEN = {"SCHEMATHESIS_HOOKS": str(Path(__file__).with_name("chosen_calls.py"))}
"""Of calls that are alike only the first are made, unless exploring; none with null as invalid."""

# To call a webhook with DELETE deletes nothing, as the checks take for granted.
LEFT_OUT = (*ENDING, "call_webhook_by_delete")

OTHER_IDS = ("get_ai_run", "reject_ai_run", "apply_ai_run")
"""Operations whose `runId` is that of no automation run."""

KEYED = "create_database"
"""The operation that is called with all kinds of keys."""

CONFIGURATION = """
[checks.positive_data_acceptance]
# Cursors, dates in the past, references, and rules between keys: no schema can tell them.
expected-statuses = ["2xx", "3xx", "400", "401", "403", "404", "409", "413", "415", "416", "422"]

[checks.ensure_resource_availability]
# A call that follows on another is given our ids, too, and not that of what was created.
enabled = false

[phases.examples.extra-data-sources]
# Each example would come once for every id that was answered before, and then be given ours.
responses = false

[phases.coverage]
# One of the methods that a path does not have: dispatch answers all of them alike.
unexpected-methods = ["trace"]

[parameters]
"""


def configuration(made: Furnished, document: str) -> str:
    """Real ids for path parameters, so that calls get past the first 404."""
    names = sorted(set(re.findall(r"{(\w+)}", document)) & made.ids.keys())
    lines = [f'"path.{name}" = "{made.ids[name]}"' for name in names]
    by_examples = [
        f'[[operations]]\ninclude-operation-id = "{name}"\n'
        "phases.coverage.enabled = false\nphases.fuzzing.enabled = false\n"
        f"phases.examples.enabled = {str(name not in SAME_BODY).lower()}"
        for name in sorted(only_by_examples(document))
    ]
    return "\n".join([CONFIGURATION, *lines, *by_examples, *_named_otherwise(made, document), ""])


def _named_otherwise(made: Furnished, document: str) -> list[str]:
    """Real ids for the operations whose parameter is that of another kind of thing elsewhere."""
    operations = set(re.findall(r'"operationId":\s*"(\w+)"', document)) & set(OTHER_IDS)
    return [
        f'[[operations]]\ninclude-operation-id = "{name}"\n'
        + "\n".join(
            f'parameters."path.{parameter}" = "{made.ids[known]}"'
            for parameter, known in EXAMPLES[name].ids.items()
        )
        for name in sorted(operations)
    ]


def only_by_examples(document: str) -> set[str]:
    """The operations that are not called with all boundaries of their bodies, nor at random.

    Those whose body has kinds enough to take minutes. Unless exploring, those whose body is that of
    an operation before, and those for platform administrators, who alone are let in. They are
    called by examples, and in sequences, all the same.
    """
    described = json.loads(document)
    schemas = described["components"]["schemas"]
    found, bodies = set(), set()
    for one in (one for methods in described["paths"].values() for one in methods.values()):
        body = _spelt_out(one.get("requestBody"), schemas)
        seen = body in bodies and one.get("requestBody") is not None
        many = len(_reached(one.get("requestBody"), schemas)) > MOST_KINDS
        if many or (not exploring() and (seen or one["x-access"]["platformAdmin"])):
            found.add(one["operationId"])
        else:
            bodies.add(body)
    return found


def _spelt_out(body: Any, schemas: Mapping[str, Any]) -> str:
    """A body by its properties, under any name of its schema."""
    (name,) = re.findall(r"#/components/schemas/(\w+)", json.dumps(body))[:1] or [None]
    return json.dumps(body if name is None else schemas[name].get("properties"))


def _reached(part: Any, schemas: Mapping[str, Any]) -> set[str]:
    """The schemas that a part of the document is made of."""
    found: set[str] = set()
    left = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(part)))
    while left:
        found |= left
        inner = json.dumps([schemas[name] for name in left])
        left = set(re.findall(r"#/components/schemas/(\w+)", inner)) - found
    return found


@pytest_asyncio.fixture(scope="module")
async def worker(_watched_database: WatchedDatabase, database_url: str) -> AsyncIterator[None]:
    """Workers that finish what calls start, and find nothing earlier tests have left."""
    emptied(database_url)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deliveries, "make_deliveries", _none)
        async with (
            dev_server() as temporal,
            running_engine(_watched_database, database_url, temporal.client),
        ):
            yield


async def _none(*_: Any) -> int:
    """No deliveries: to tell the endpoints that calls make of all that calls do takes minutes."""
    return 0


@pytest.mark.usefixtures("worker")
async def test_no_generated_call_breaks_a_promise(
    own: Furnished, settings: Settings, tmp_path: Path
) -> None:
    limits = {f"WORKSPACE_RATE_LIMIT_{one}": "0" for one in ("KEY", "RUN_START", "WEBHOOK")}
    async with serving(settings, **limits) as server:
        async with httpx2.AsyncClient(base_url=server.url, trust_env=False, timeout=ENOUGH) as http:
            document = (await http.get("/openapi.json")).text
        file = tmp_path / "schemathesis.toml"
        file.write_text(configuration(own, document))
        described = tmp_path / "openapi.json"
        described.write_text(json.dumps(with_one_key(connected(own, document))))
        status, output = await run(described, server.url, own.space.token, file)
    assert status == 0, output[-20_000:]


def connected(made: Furnished, document: str) -> Any:
    """The document, whose bodies name the connection that there is, and whose answers are closed.

    Without the calls that it shows: tests/contract/test_examples.py makes them.
    """
    real, described = made.ids["connectionId"], json.loads(document)
    for operation in (one for methods in described["paths"].values() for one in methods.values()):
        for content in operation.get("requestBody", {}).get("content", {}).values():
            content.pop("example", None)
    described["components"]["schemas"] = closed(described["components"]["schemas"])
    described["paths"] = closed(described["paths"])
    for schema in described["components"]["schemas"].values():
        named = schema.get("properties", {}).get("connectionId", {})
        if named.get("type") == "string":
            named["enum"] = [real]
            for example in schema.get("examples", ()):
                example["connectionId"] = real
    return described


def with_one_key(described: Any) -> Any:
    """The document, of which one operation takes an Idempotency-Key: all read it in one place."""
    if exploring():
        return described
    for operation in (one for methods in described["paths"].values() for one in methods.values()):
        if operation["operationId"] != KEYED:
            operation["parameters"] = [
                one for one in operation.get("parameters", ()) if one["name"] != "Idempotency-Key"
            ]
    return described


async def run(document: Path, url: str, token: str, file: Path) -> tuple[int, str]:
    """The command line of schemathesis, one worker: CPython 3.11 parses in one thread at a time."""
    left_out = [option for name in LEFT_OUT for option in ("--exclude-operation-id", name)]
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("st")),
        *("--config-file", str(file)),
        "run",
        *(str(document), "--url", url),
        *("--header", f"Authorization: Bearer {token}"),
        *("--phases", "examples,coverage,fuzzing,stateful"),
        *("--max-examples", str(EXAMPLES_PER_OPERATION)),
        *("--seed", str(SEED)),
        # Ids of ours take the place of all that is tried for them: such calls would be the same.
        "--generation-unique-inputs",
        *("--workers", "1"),
        *("--request-timeout", str(ENOUGH)),
        # How fast calls are generated is no promise of ours.
        *("--suppress-health-check", "too_slow"),
        *left_out,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=file.parent,
        env={**os.environ, "NO_COLOR": "1", **CHOSEN} | ({"EXPLORING": "1"} if exploring() else {}),
    )
    output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode()
