"""The finding of one check of `workspace doctor`."""

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """The status of a check. A warning is worth a look, and no reason to act at once."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; a remedy makes it a failure, unless it is said to be less."""

    subject: str
    fact: str
    remedy: str | None = None
    is_warning: bool = False

    @property
    def status(self) -> Status:
        if self.remedy is None:
            return Status.OK
        return Status.WARNING if self.is_warning else Status.FAILURE


def warning(subject: str, fact: str, remedy: str) -> Finding:
    """A finding that is worth a look."""
    return Finding(subject, fact, remedy, is_warning=True)
