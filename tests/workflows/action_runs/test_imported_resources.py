"""Actions that import resources of providers."""

from typing import Any

import pytest

from models.core.base import Id
from models.sources.connections.providers import CreateConnection
from models.sources.connections.store import create_connection
from runtime.errors import ValidationError
from tests.support.actions import act, make
from tests.support.engine import KEYS, Engine

RESOURCE: dict[str, Any] = {
    "externalType": "document",
    "externalId": "welcome",
    "name": "Welcome.md",
    "surfaceKind": "document",
    "capabilities": ["import"],
}


async def demo(engine: Engine) -> Id:
    body = CreateConnection.model_validate({"provider": "demo", "label": "Demo"})
    async with engine.database.transaction() as work:
        return (await create_connection(work, engine.actor, KEYS, body)).id


@pytest.mark.long
async def test_an_action_imports_a_resource_and_waits_for_the_end(engine: Engine) -> None:
    named = {"connectionId": str(await demo(engine)), "resource": RESOURCE}
    first = await act(engine, "import_resource", **named)
    assert first.status == "succeeded", first
    assert first.result is not None
    assert first.result["imported"]["created"] == 1
    again = await act(engine, "import_resource", **named)
    assert again.result is not None
    assert again.result["imported"]["unchanged"] == 1


async def test_an_import_that_cannot_be_says_why(engine: Engine) -> None:
    named = {"connectionId": str(await demo(engine))}
    run = await act(
        engine, "import_resource", resource={**RESOURCE, "externalId": "calendar"}, **named
    )
    assert (run.status, "can't be imported" in str(run.error)) == ("failed", True)
    bound = {"connectionId": {"type": "expression", "value": f"'{named['connectionId']}'"}}
    with pytest.raises(ValidationError, match="Must be an id, not a binding"):
        await make(engine, "import_resource", resource=RESOURCE, **bound)
