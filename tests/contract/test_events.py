"""The events of a workspace are what the document says, in its log and in calls of webhooks."""

import json
import uuid
from typing import Any

import pytest
from sqlalchemy import select

from models.messages.webhook_endpoints.deliveries import payload_of
from models.messages.webhook_endpoints.rules import TEST
from models.messages.workspace_events.log import EventRow, event_body, workspace_event
from models.messages.workspace_events.rules import EventType
from tests.contract.furnished import Furnished
from tests.support.document import DOCUMENT
from tests.support.events import WRITTEN_BY_TESTS, call_of, described, deviations

SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
LOGGED = "#/components/schemas/WorkspaceEventBody"


def test_every_type_has_a_webhook_and_a_place_in_the_log() -> None:
    assert DOCUMENT["webhooks"].keys() == {*EventType, TEST, "send_webhook"}
    assert SCHEMAS["WorkspaceEventBody"]["discriminator"]["mapping"].keys() == set(EventType)
    for kind in EventType:
        body = DOCUMENT["webhooks"][kind]["post"]["requestBody"]
        call = body["content"]["application/json"]["schema"]
        mapping = SCHEMAS["WorkspaceEventBody"]["discriminator"]["mapping"]
        event = SCHEMAS[mapping[kind].rpartition("/")[2]]
        assert call["properties"]["type"]["const"] == kind == event["properties"]["type"]["const"]
        assert call["properties"]["data"] == event["properties"]["data"]


@pytest.mark.parametrize("name", DOCUMENT["webhooks"])
def test_a_webhook_says_how_it_is_signed_and_what_to_answer(name: str) -> None:
    call = DOCUMENT["webhooks"][name]["post"]
    parameters = DOCUMENT["components"]["parameters"]
    headers = [parameters[one["$ref"].rpartition("/")[2]]["name"] for one in call["parameters"]]
    assert headers == ["webhook-id", "webhook-timestamp", "webhook-signature"]
    assert call["responses"].keys() == {"2XX", "410", "default"}


@pytest.mark.long
async def test_logged_events_match_the_documented_ones(used: Furnished) -> None:
    async with used.space.database.reading() as work:
        events = await work.rows(select(workspace_event), of=EventRow)
    assert len({event.type for event in events}) > 10
    for event in events:
        if not event.data.keys().isdisjoint(WRITTEN_BY_TESTS):
            continue
        described(LOGGED).validate(json.loads(event_body(event).model_dump_json(by_alias=True)))
        described(call_of(event.type)).validate(payload_of(event))


def test_an_event_that_is_not_described_is_noticed() -> None:
    one = str(uuid.uuid4())
    for kind, data, fits in [
        ("record.created", {"databaseId": one, "recordId": one}, True),
        ("record.created", {"databaseId": one, "count": 600}, True),
        ("record.created", {"databaseId": one}, False),
        ("record.created", {"databaseId": one, "recordId": one, "title": "x"}, False),
        ("record.created", {"databaseId": "x", "recordId": one}, False),
        ("member.added", {"userId": one, "role": "emperor"}, False),
        ("run.status", {"actionId": one, "runId": one, "status": "succeeded"}, True),
        ("run.status", {"runId": one, "status": "succeeded"}, False),
        ("workspace.updated", {}, True),
    ]:
        assert (not list(deviations(kind, data))) is fits, (kind, data)
