"""Failures are alike when their messages differ only in what differs from run to run."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.automation.incidents.rules import (
    LONGEST_MESSAGE,
    QUIET,
    Course,
    IncidentChange,
    after,
    fingerprint_of,
    has_recovered,
    magnitude,
    normalised,
)

ANY_UUID = UUID(int=7)
NOON = datetime(2026, 5, 17, 12, tzinfo=UTC)
VALUES = {
    "<id>": st.one_of(
        st.uuids().map(str),
        st.integers(min_value=0).map(hex),
        st.sampled_from(["deadbeef01", "cus_9xQ2abc", "ord_2026x17"]),
    ),
    "<number>": st.one_of(
        st.integers().map(str),
        st.decimals(allow_nan=False, allow_infinity=False, places=2).map(str),
    ),
    "<time>": st.datetimes(min_value=datetime(1000, 1, 1)).map(  # noqa: DTZ001  # printed alone
        lambda one: one.isoformat(timespec="seconds") + "Z"
    ),
    "<address>": st.one_of(
        st.ip_addresses(v=4).map(str),
        st.emails().filter(
            lambda one: (
                set(one)
                <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.@+-")
            )
        ),
        st.from_regex(r"https://[a-z]{1,9}\.example/[a-z0-9/]{0,20}", fullmatch=True),
    ),
    "<value>": st.text(st.characters(exclude_characters='"'), max_size=40).map(lambda t: f'"{t}"'),
}
WORDS = st.lists(
    st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=9), min_size=1, max_size=8
)
SLOTS = st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=5)


@pytest.mark.long
@given(WORDS, SLOTS, st.data())
def test_messages_that_differ_in_values_alone_are_one(
    words: list[str], slots: list[str], data: st.DataObject
) -> None:
    def message() -> str:
        filled = [data.draw(VALUES[slot]) for slot in slots]
        return " ".join(part for pair in zip(words, filled, strict=False) for part in pair)

    written = normalised(message())
    assert written == normalised(message())
    assert written == " ".join(part for pair in zip(words, slots, strict=False) for part in pair)


@given(WORDS, WORDS)
def test_messages_of_other_words_are_others(first: list[str], second: list[str]) -> None:
    alike = normalised(f"{' '.join(first)} 17") == normalised(f"{' '.join(second)} 18")
    assert alike == (first == second)


@given(st.text(max_size=4_000))
def test_any_text_has_a_bounded_form_that_is_its_own(text: str) -> None:
    written = normalised(text)
    assert len(written) <= LONGEST_MESSAGE
    assert fingerprint_of(ANY_UUID, None, None, written) == fingerprint_of(
        ANY_UUID, None, None, normalised(text)
    )


@pytest.mark.parametrize(
    ("message", "written"),
    [
        ("The server returned 503.", "The server returned 503."),
        ("The server returned 404.", "The server returned 404."),
        ("It took 30s, not 12ms.", "It took <number>s, not <number>ms."),
        ("can't read 'a b', doesn't exist", "can't read <value>, doesn't exist"),
        ("key “amount” is missing", "key <value> is missing"),
        ("refused by 10.0.0.7:5432", "refused by <address>"),
        ("at 12:30:45 and 2026-05-17", "at <time> and <time>"),
        ("no  such\n file v2", "no such file v2"),
    ],
)
def test_a_fingerprint_drops_the_variable_parts_of_a_message(message: str, written: str) -> None:
    assert normalised(message) == written


def test_automation_node_code_and_message_each_make_another_fingerprint() -> None:
    same = fingerprint_of(ANY_UUID, "a", "b", "c")
    assert same == fingerprint_of(ANY_UUID, "a", "b", "c")
    others = {
        fingerprint_of(UUID(int=8), "a", "b", "c"),
        fingerprint_of(ANY_UUID, "x", "b", "c"),
        fingerprint_of(ANY_UUID, "a", "x", "c"),
        fingerprint_of(ANY_UUID, "a", "b", "x"),
        fingerprint_of(ANY_UUID, "ab", None, "c"),
    }
    assert len(others | {same}) == 6


def course(**values: object) -> Course:
    times = dict.fromkeys(("opened_at", "first_failed_at", "last_failed_at"), NOON)
    counts = dict.fromkeys(("runs", "runs_before", "openings"), 0)
    return Course(**{**times, **counts, "closed_at": None, **values})  # type: ignore[arg-type]


def test_the_first_failures_open_it_and_powers_of_ten_are_growth() -> None:
    opened, change = after(course(), [NOON] * 3)
    assert (opened.openings, opened.runs_now, change) == (1, 3, IncidentChange.OPENED)
    told = []
    for _ in range(100):
        opened, change = after(opened, [NOON])
        told += [opened.runs] if change is IncidentChange.GREW else []
    assert told == [10, 100]


def test_a_failure_after_the_close_opens_it_anew_and_an_earlier_one_does_not() -> None:
    closed = course(runs=12, openings=1, closed_at=NOON)
    still, change = after(closed, [NOON - timedelta(seconds=1)])
    assert (still.closed_at, still.runs, still.runs_now, change) == (NOON, 13, 0, None)
    late = NOON + timedelta(seconds=1)
    opened, change = after(still, [late, NOON - timedelta(seconds=2)])
    assert change is IncidentChange.OPENED
    assert (opened.closed_at, opened.openings, opened.opened_at) == (None, 2, late)
    assert (opened.runs, opened.runs_now) == (15, 1)


@given(st.integers(1, 10**9))
def test_the_magnitude_is_the_power_of_ten_reached(runs: int) -> None:
    assert 10 ** magnitude(runs) <= runs < 10 ** (magnitude(runs) + 1)


def test_it_recovers_by_many_successes_or_by_one_after_a_quiet_day() -> None:
    assert has_recovered(20, NOON, NOON)
    assert not has_recovered(19, NOON, NOON)
    assert has_recovered(1, NOON - QUIET, NOON)
    assert not has_recovered(0, NOON - QUIET, NOON)
