"""Token buckets: an average, a burst, one bucket per name, and bounded memory."""

import pytest

from api.kernel.rate_limits import RateLimit, TooOftenError


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def allowed(limit: RateLimit, name: str, times: int) -> int:
    """How many of so many calls are let through."""
    count = 0
    for _ in range(times):
        try:
            limit.take(name)
        except TooOftenError:
            continue
        count += 1
    return count


def test_a_burst_is_followed_by_the_average() -> None:
    clock = Clock()
    limit = RateLimit(50, 200, clock=clock)
    assert allowed(limit, "a", 300) == 200
    clock.now += 1
    assert allowed(limit, "a", 300) == 50
    clock.now += 1000
    assert allowed(limit, "a", 300) == 200


def test_every_name_has_its_own() -> None:
    limit = RateLimit(1, 2, clock=Clock())
    assert [allowed(limit, name, 5) for name in ("a", "b", "a")] == [2, 2, 0]


def test_a_refusal_says_when_to_come_again() -> None:
    clock = Clock()
    limit = RateLimit(0.1, 1, clock=clock)
    limit.take("a")
    with pytest.raises(TooOftenError) as refused:
        limit.take("a")
    assert refused.value.headers["Retry-After"] == "10"
    clock.now += 9.5
    with pytest.raises(TooOftenError) as refused:
        limit.take("a")
    assert refused.value.headers["Retry-After"] == "1"
    clock.now += 0.5
    limit.take("a")


def test_zero_is_no_limit() -> None:
    assert allowed(RateLimit(0, 1), "a", 1000) == 1000


def test_names_do_not_pile_up() -> None:
    limit = RateLimit(1, 1, names=10, clock=Clock())
    for number in range(1000):
        limit.take(str(number))
    assert len(limit._buckets) == 10
    assert allowed(limit, "999", 1) == 0
