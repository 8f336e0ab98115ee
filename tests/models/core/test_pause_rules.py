"""The pause that has what rests, where several hold the same work."""

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import pytest

from models.core.pauses.rules import next_holder

AT = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Pause:
    id: UUID
    subject_kind: str
    subject_id: UUID
    cause: str
    resumed_at: datetime | None


def pause(number: int, subject: str, cause: str = "person", *, resumed: bool = False) -> Pause:
    return Pause(UUID(int=number), subject, UUID(int=9), cause, AT if resumed else None)


OWN = pause(1, "automation")
BREAKER = pause(2, "automation", "circuit_breaker")
WHOLE = pause(3, "workspace")
RESUMED_OWN = pause(4, "automation", resumed=True)
RESUMED_BREAKER = pause(5, "automation", "circuit_breaker", resumed=True)
RESUMED_WHOLE = pause(6, "workspace", resumed=True)


@pytest.mark.parametrize(
    ("letting_go", "further", "holder"),
    [
        (OWN, [], None),
        (OWN, [WHOLE, BREAKER], BREAKER),
        (WHOLE, [OWN], OWN),
        # One that is resumed gets it from a pause before it alone.
        (OWN, [RESUMED_WHOLE], RESUMED_WHOLE),
        (OWN, [RESUMED_WHOLE, RESUMED_BREAKER], RESUMED_BREAKER),
        (OWN, [RESUMED_BREAKER, WHOLE], WHOLE),
        (OWN, [RESUMED_OWN], None),
        (BREAKER, [RESUMED_OWN, RESUMED_BREAKER], None),
        (WHOLE, [RESUMED_OWN, RESUMED_BREAKER, RESUMED_WHOLE], None),
    ],
)
def test_work_rests_on_at_the_next_pause(
    letting_go: Pause, further: list[Pause], holder: Pause | None
) -> None:
    assert next_holder(letting_go, further) is holder
