"""Ids sort as they were made."""

from datetime import timedelta

from runtime.clock import utc_now
from runtime.ids import least_id, new_id


def test_ids_made_before_a_moment_are_below_its_least_id() -> None:
    earlier = new_id()
    now = utc_now()
    later = new_id()
    hour = timedelta(hours=1)
    assert earlier < least_id(now + hour)
    assert least_id(now) <= later < least_id(now + hour)
    assert least_id(now - hour) < earlier
