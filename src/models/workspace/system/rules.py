"""The conditions under which a worker process counts as there. Pure."""

from datetime import timedelta

BEAT_SECONDS = 5.0
"""The seconds between two signs of a worker process that it is there."""
LOST_AFTER = timedelta(seconds=8)
"""Work is said to wait for a process that has missed a beat. One that is replaced is not missed."""
ALIVE_FOR = timedelta(seconds=20)
"""A process that has said nothing for so long is lost."""
SHOWN_FOR = timedelta(hours=1)
"""So long a process that is gone is still shown."""
