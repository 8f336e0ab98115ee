"""The promise of pauses, as scenarios read it from the log of changes."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from tests.simulation.invariants import Pauses
from tests.simulation.processes import Violation
from tests.simulation.world import Change

WORKSPACE, AUTOMATION, RUN = (UUID(int=number) for number in (1, 2, 3))
_RUN_FACTS: dict[str, Any] = {"automation": str(AUTOMATION), "test": False, "admitted": True}
_REST_FACTS: dict[str, Any] = {"subjects": [str(AUTOMATION), str(WORKSPACE)], "open": True}


def _change(kind: str, id_: UUID, after: str, before: str | None = None, **facts: Any) -> Change:
    return Change(0, 0, kind, id_, before, after, facts)


def _pause(subject: UUID) -> Change:
    return _change("pause", subject, "on")


def _resume(subject: UUID) -> Change:
    return _change("pause", subject, "over")


ACCEPTED = _change("run", RUN, "queued", **_RUN_FACTS)
RESTS = _change("rest", RUN, "rests", **_REST_FACTS)
LET_GO = _change("rest", RUN, "over", **_REST_FACTS)
WITHDRAWN = _change("rest", RUN, "over", **{**_REST_FACTS, "open": False})
RESUMED = (_pause(WORKSPACE), ACCEPTED, RESTS, _resume(WORKSPACE), LET_GO)
BEGINS = _change("run", RUN, "running", "queued", **_RUN_FACTS)


@pytest.mark.parametrize(
    "changes",
    [
        [ACCEPTED, BEGINS],
        [ACCEPTED, _pause(AUTOMATION), BEGINS],
        [*RESUMED, BEGINS],
        [_pause(AUTOMATION), ACCEPTED, RESTS, WITHDRAWN],
        # A relay has claimed the start before the second pause.
        [
            _pause(WORKSPACE),
            ACCEPTED,
            RESTS,
            _resume(WORKSPACE),
            LET_GO,
            _pause(AUTOMATION),
            BEGINS,
        ],
    ],
    ids=["none", "claimed before", "resumed", "withdrawn", "claimed between two"],
)
def test_a_promise_that_is_kept(changes: Sequence[Change]) -> None:
    pauses = Pauses(WORKSPACE)
    for change in changes:
        pauses.see(change)


@pytest.mark.parametrize(
    "changes",
    [
        [_pause(AUTOMATION), ACCEPTED, BEGINS],
        [_pause(WORKSPACE), ACCEPTED, BEGINS],
        [_pause(WORKSPACE), _pause(AUTOMATION), ACCEPTED, _resume(WORKSPACE), BEGINS],
        [_pause(AUTOMATION), ACCEPTED, RESTS, LET_GO],
        [_pause(AUTOMATION), ACCEPTED, RESTS, _resume(AUTOMATION), _pause(AUTOMATION), BEGINS],
        [_pause(AUTOMATION), ACCEPTED, RESTS, _resume(AUTOMATION), _pause(WORKSPACE), LET_GO],
        [_change("left", RUN, "in line")],
    ],
    ids=["begun", "workspace", "second", "let go", "paused again", "let go again", "in line"],
)
def test_a_promise_that_is_broken(changes: Sequence[Change]) -> None:
    pauses = Pauses(WORKSPACE)
    for change in changes[:-1]:
        pauses.see(change)
    with pytest.raises(Violation, match="pause"):
        pauses.see(changes[-1])
