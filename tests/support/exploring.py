"""How far random tests look."""

from hypothesis import settings

EXPLORE = "explore"
"""The profile of `make explore`: always other examples, and many. By default they are the same."""
FACTOR = 50


def exploring() -> bool:
    """Whether this is `make explore`."""
    return settings.get_current_profile_name() == EXPLORE


def examples(count: int, explored: int | None = None) -> int:
    """The number of examples of a test, which tries `count` in an ordinary run.

    An expensive test tries `explored` in `make explore`, others `FACTOR` times as many.
    """
    if not exploring():
        return count
    return count * FACTOR if explored is None else explored
