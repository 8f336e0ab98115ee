"""The words that say which pause or limit a run waits for."""

from typing import Any

from models.core.pauses.rules import PauseCause
from models.core.pauses.shapes import WaitCause, WaitKind

_PAUSED = {
    "workspace": "The workspace is paused",
    "automation": "The automation is paused",
    "connection": "A connection that it calls through is paused",
}


def wait_words(waiting_for: dict[str, Any]) -> str:
    """A sentence about a `waitingFor`."""
    if waiting_for["kind"] == WaitKind.LIMITED:
        return _limited(waiting_for)
    if waiting_for["cause"] == PauseCause.CIRCUIT_BREAKER:
        words = "The circuit breaker of the automation is open"
    else:
        words = _PAUSED[waiting_for["subject"]]
    if waiting_for.get("resuming"):
        words += ", and is being resumed"
    reason = waiting_for.get("reason")
    return f"{words}: {reason}" if reason else f"{words}."


def _limited(waiting_for: dict[str, Any]) -> str:
    host = waiting_for.get("host")
    if waiting_for["cause"] == WaitCause.ANSWER:
        words = f"An answer of {host or 'the other side'} has asked to wait before the next call"
    else:
        words = f"It waits for its turn to call {host or 'through a connection'}"
    until = waiting_for.get("until")
    return f"{words}, until {until[:16].replace('T', ' ')} UTC." if until else f"{words}."
