"""Which runs are refused when runs wait for one another in a circle."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from models.automation.automation_runs.calls import WaitingRun, runs_to_refuse

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
RUNS = {name: UUID(int=number) for number, name in enumerate("abcdefgh", 1)}
KEYS = {name: (UUID(int=number), "") for number, name in enumerate("AB", 100)}


def refused(line: str, holders: str, callers: str) -> str:
    """The names of the runs to refuse.

    `line` is who waits for a slot of which key, oldest first, "cA" for c and A; `holders` who has
    one; `callers` who waits for whom, "bc" for b waiting for c.
    """
    in_line = [
        WaitingRun(RUNS[one[0]], KEYS[one[1]], BEGAN + timedelta(seconds=age))
        for age, one in enumerate(line.split())
    ]
    held: dict[tuple[UUID, str], list[UUID]] = {}
    for one in holders.split():
        held.setdefault(KEYS[one[1]], []).append(RUNS[one[0]])
    waits = {RUNS[one[1]]: RUNS[one[0]] for one in callers.split()}
    names = {run: name for name, run in RUNS.items()}
    return "".join(names[one.id] for one in runs_to_refuse(in_line, held, waits))


@pytest.mark.parametrize(
    ("line", "holders", "callers", "expected"),
    [
        pytest.param("", "", "", "", id="nobody in line"),
        pytest.param("cA", "aA", "bc", "", id="the holder waits for nobody"),
        pytest.param("cA", "", "bc", "", id="a free slot"),
        pytest.param("bA", "aA", "ab", "b", id="waits for its own caller"),
        pytest.param("cB dA", "aA bB", "ac bd", "d", id="two keys, crosswise"),
        pytest.param("cB dA", "aA bB eB", "ac bd", "", id="another slot will be free"),
        pytest.param("cB dA fB", "aA bB eB", "ac bd ef", "f", id="every slot in the circle"),
        pytest.param("cB dA", "aA bB", "ae ec bd", "d", id="through a run that needs no slot"),
        pytest.param("cB dA gA", "aA bB", "ac bd hg", "d", id="who is only in line is spared"),
        pytest.param("bA dB", "aA cB", "ab cd", "db", id="two deadlocks"),
    ],
)
def test_the_newest_run_of_every_deadlock_is_refused(
    line: str, holders: str, callers: str, expected: str
) -> None:
    assert refused(line, holders, callers) == expected
