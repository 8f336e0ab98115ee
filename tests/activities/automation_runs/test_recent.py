"""What a process keeps is bounded by its size, however many runs are open."""

from activities.automation_runs.runs import ENTRY_BYTES, LruCache

TEXT = "x" * 998
SIZE = ENTRY_BYTES + 1_000


def kept(recent: LruCache[int, str], among: int) -> list[int]:
    return [key for key in range(among) if key in recent._entries]


def test_the_last_used_entries_are_kept_up_to_the_limit() -> None:
    recent = LruCache[int, str](5 * SIZE)
    for key in range(5):
        recent.keep(key, TEXT, TEXT)
    assert recent.known(0) == TEXT
    recent.keep(5, TEXT, TEXT)
    recent.keep(6, TEXT, TEXT)
    assert kept(recent, 7) == [0, 3, 4, 5, 6]
    assert recent.known(1) is None


def test_a_value_that_is_kept_again_or_forgotten_gives_its_room_back() -> None:
    recent = LruCache[int, str](2 * SIZE)
    for _ in range(5):
        recent.keep(0, TEXT, TEXT)
    recent.keep(1, TEXT, TEXT)
    assert kept(recent, 2) == [0, 1]
    recent.forget(0)
    recent.forget(0)
    recent.keep(2, TEXT, TEXT)
    assert kept(recent, 3) == [1, 2]


def test_one_value_is_kept_however_large() -> None:
    recent = LruCache[int, str](SIZE)
    recent.keep(0, TEXT, TEXT)
    recent.keep(1, TEXT * 10, TEXT * 10)
    assert kept(recent, 2) == [1]
