"""The attendance of pauses: what rests is started after a resume, at once or at a rate (ADR 0097).

Any number may run: each turn takes a pause that no other has taken.
"""

from typing_extensions import override

from activities.poller import Poller
from models.core.pauses.release import attend
from runtime.database import Database


class PauseAttendance(Poller):
    """Attends to pauses until it is stopped."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database

    @override
    async def turn(self) -> bool:
        """Do the next part of a pause that is due; False when none is."""
        async with self._database.transaction() as work:
            return await attend(work)
