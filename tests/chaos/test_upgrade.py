"""Today's version on the states of earlier ones: open work continues, and answers stay valid."""

from pathlib import Path

import pytest

from tests.support import kept_state
from tests.support.checkout import RESTORE_POSTGRESQL, Checkout
from tests.support.patience import found_when

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=60), pytest.mark.long]

STATES = sorted(kept_state.STATES.glob("*.tar.xz"))
WITH_TEMPORAL = "mkdir -p .state\ncp -a backup/temporal.db .state/temporal.db\n"

CASES = [(kept, True) for kept in STATES] + [(kept, False) for kept in STATES[-1:]]
"""Each state with its Temporal, and the newest one also without."""


@pytest.mark.parametrize(
    ("kept", "with_temporal"),
    CASES,
    ids=[f"{kept.name.partition('.')[0]}{'' if both else ' alone'}" for kept, both in CASES],
)
async def test_an_older_state_continues(kept: Path, with_temporal: bool, tmp_path: Path) -> None:
    story = kept_state.unpack(kept, tmp_path)
    checkout = Checkout(tmp_path)
    started = RESTORE_POSTGRESQL
    async with checkout.up(f"{WITH_TEMPORAL}{started}" if with_temporal else started):
        records = story["records"]
        assert story["rows"].items() <= (await kept_state.shown_records(checkout, records)).items()
        for path, status in (("ended", "succeeded"), ("failed", "failed"), ("import", "succeeded")):
            assert (await checkout.call(story[path]))["status"] == status
        await checkout.wait_for(story["delay"], "succeeded")
        await checkout.approve(story["waiting"])
        await checkout.call("/automation-events", {"eventKey": "paid"})
        await checkout.wait_for(story["event"], "succeeded")
        called = await kept_state.call_hook(checkout, story["hook"])
        await checkout.wait_for(called, "succeeded")
        retried = await checkout.call(f"{story['failed']}/retry", {})
        place = story["failed"].rpartition("/")[0]
        await checkout.wait_for(f"{place}/{retried['id']}", "failed")
        link = story["link"]
        opened = await checkout.http.get(
            f"{checkout.connection['baseUrl']}{link['url']}",
            headers={"X-Share-Token": link["token"]},
        )
        assert opened.status_code == 200, opened.text
        assert [one["name"] for one in (await checkout.call("/secrets"))["secrets"]] == ["TOKEN"]

        async def counted() -> int:
            return len((await checkout.call(records))["records"])

        # Each of the four runs that went on has made one record, and none two.
        expected = len(story["rows"]) + 4
        assert await found_when(counted, lambda count: count >= expected) == expected
    await checkout.http.aclose()


def test_states_are_kept() -> None:
    assert STATES
