"""How far random tests look."""

from hypothesis import settings

EXPLORE = "explore"
"""The profile of `make explore`: always other examples, and many. By default they are the same."""
FACTOR = 20


def examples(count: int) -> int:
    """How many examples a test tries, which tries `count` in an ordinary run."""
    return count * FACTOR if settings.get_current_profile_name() == EXPLORE else count
