"""An unknown path is answered with the nearest known ones, in any spelling and of any length."""

import time
from uuid import uuid4

import pytest

from api.kernel.dispatch import MOST, Neighbours
from api.routers.registry import ROUTERS
from tests.support.automations import refusal
from tests.support.client import Client
from tests.support.spaces import Space

NEIGHBOURS = Neighbours([route for router in ROUTERS for route in router.routes])


@pytest.mark.parametrize(
    ("method", "path", "nearest"),
    [
        ("GET", "/v1/workspaces/{}/databases/{}/records", "/v1/databases/{databaseId}/records"),
        ("POST", "/v1/workspaces/{}/databases/{}/fields", "/v1/databases/{databaseId}/fields"),
        ("POST", "/v1/databases/{}/record", "/v1/databases/{databaseId}/records"),
        ("PATCH", "/v1/databases/{}/records/{}", "/v1/records/{recordId}"),
        ("GET", "/records/{}", "/v1/records/{recordId}"),
        ("POST", "/v1/workspaces/{}/Automations", "/v1/workspaces/{workspaceId}/automations"),
        (
            "POST",
            "/v1/workspaces/{}/automations/{}/runs/{}/abort",
            "/v1/workspaces/{workspaceId}/automations/{automationId}/runs/{runId}",
        ),
        (
            "POST",
            "/v1/workspaces/{}/automations/{}/runs/{}/approve",
            "/v1/workspaces/{workspaceId}/automations/{automationId}/runs/{runId}",
        ),
        ("POST", "/v1/realtime/ticket", "/v1/workspaces/{workspaceId}/realtime/ticket"),
    ],
)
def test_the_nearest_path_comes_among_the_first(method: str, path: str, nearest: str) -> None:
    near = NEIGHBOURS.of(method, path.replace("{}", str(uuid4())))
    # Incidents have records, too: theirs are as near as those of a database.
    assert nearest in [one.partition(" ")[0] for one in near[:2]]
    assert len(near) <= MOST


@pytest.mark.parametrize(
    ("method", "path", "other"),
    [
        ("POST", "/v1/workspaces/{}/automations/{}/runs", "/run"),
        ("PATCH", "/v1/workspaces/{}/databases", "/{databaseId}"),
        ("PUT", "/v1/workspaces/{}/databases/{}", None),
        ("DELETE", "/v1/me", None),
        ("GET", "/", None),
    ],
)
def test_a_method_is_looked_for_beside_the_path(method: str, path: str, other: str | None) -> None:
    found = NEIGHBOURS.taking(method, path.replace("{}", str(uuid4())))
    assert found is None if other is None else found is not None and found.endswith(other)


async def test_a_refused_method_tells_where_it_is(client: Client, space: Space) -> None:
    answer = await client.post(f"{space.path}/automations/{uuid4()}/runs", json={})
    assert refusal(answer) == (405, "method_not_allowed")
    assert answer.json()["message"].endswith(
        "Allowed: GET, HEAD. Nearest with POST:"
        " /v1/workspaces/{workspaceId}/automations/{automationId}/run."
    )


@pytest.mark.parametrize("path", ["/v1/nope", "/v1/none", "/v1/cast", "/v1/now"])
def test_a_word_that_resembles_a_part_of_another_has_no_neighbours(path: str) -> None:
    assert NEIGHBOURS.of("GET", path) == []


@pytest.mark.parametrize("path", ["/v1/runs", "/v1/spreadsheet", "/v1/automation", "/v1/recrods"])
def test_a_word_alone_has_the_neighbours_it_is_close_to(path: str) -> None:
    word = path.rpartition("/")[2][:3]
    near = NEIGHBOURS.of("GET", path)
    assert near
    assert all(word in one for one in near)


def test_a_path_with_no_known_word_has_no_neighbours() -> None:
    assert NEIGHBOURS.of("GET", "/qqqq/zzzz") == []
    assert NEIGHBOURS.of("GET", "") == []


@pytest.mark.parametrize(
    "path",
    [
        "/v1/" + "records/" * 5_000,
        "/" + "/".join(["records"] * 16),
        "/v1/" + "recordsrecords" * 5_000,
        "/" + "/".join(f"{'r' * 60}{at}" for at in range(16)),
        "/v1/%00/\x00/records\x00",
    ],
)
def test_a_hostile_path_costs_little(path: str) -> None:
    began = time.process_time()
    assert len(NEIGHBOURS.of("GET", path)) <= MOST
    NEIGHBOURS.taking("GET", path)
    assert time.process_time() - began < 2.5
