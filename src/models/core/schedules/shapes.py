"""The parts of a schedule that the wire shows."""

from models.core.base import Shape


class PassedOver(Shape):
    """Counts of due times without a run since the schedule was made, as of the last minute or so.

    `skipped`: an earlier run was still open; `missed`: the platform was away for longer than the
    schedule makes up for, ten minutes unless it says otherwise.
    """

    skipped: int
    missed: int
