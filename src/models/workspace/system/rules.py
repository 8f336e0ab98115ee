"""When a worker process counts as there. Pure."""

from datetime import timedelta

BEAT_SECONDS = 5.0
"""How often a worker process says that it is there."""
ALIVE_FOR = timedelta(seconds=20)
"""A process that has said nothing for so long is lost."""
SHOWN_FOR = timedelta(hours=1)
"""So long a process that is gone is still shown."""
