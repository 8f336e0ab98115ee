"""HEAD wherever GET reads: the same status and headers, and no body (RFC 9110, 9.3.2)."""

from dataclasses import replace

import pytest

from tests.contract.catalogue import EXAMPLES
from tests.contract.furnished import Furnished
from tests.contract.operations import Operation, call, operations
from tests.support.cells import cells

pytestmark = pytest.mark.takes(seconds=30)

READS = [one for one in operations() if one.method == "get" and one.id in EXAMPLES]
OF_REQUEST = {"x-request-id", "date", "x-ratelimit-remaining", "x-ratelimit-reset", "link"}
"""Two requests differ in these: `Link` has a cursor that is sealed anew."""
WRITES = {
    "call_webhook_by_get",
    "download_shared_file",
    "get_shared_calendar",
    "get_webhook_signing_secret",
    "open_realtime_stream",
    "open_share_link",
}
"""A GET that starts a run, makes a secret or uses something up: it has no HEAD."""


@pytest.fixture(autouse=True)
def _short_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream ends by itself, because no client closes it here."""
    monkeypatch.setattr("api.run_events.LIFETIME_SECONDS", 0.5)
    monkeypatch.setattr("api.realtime.feeds.LIFETIME_SECONDS", 0.5)


async def test_a_head_answers_as_its_get_without_a_body(own: Furnished) -> None:
    with cells() as named:
        for operation in READS:
            with named(operation.id):
                await _compare(own, operation)


async def _compare(made: Furnished, operation: Operation) -> None:
    read = await call(made.client, operation, made)
    head = await call(made.client, replace(operation, method="head"), made)
    assert head.content == b""
    if operation.id in WRITES:
        allowed = head.headers["allow"].split(", ")
        assert (head.status_code, "GET" in allowed, "HEAD" in allowed) == (405, True, False)
        return
    assert head.status_code == read.status_code
    for name in (read.headers.keys() | head.headers.keys()) - OF_REQUEST:
        assert head.headers.get(name) == read.headers.get(name), name
    assert ("link" in head.headers) == ("link" in read.headers)
