"""Histories as files, without the names of machines and processes."""

import json
import re
from pathlib import Path

from pydantic import JsonValue
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory

from cli.replay.errors import HistoryUnavailableError

_FIRST = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED
_PROCESS = re.compile(r"\d+@.+")
"""A process on a machine, as identities and sticky queues name it; no replay reads it."""
_DROPPED = {"stackTrace"}
"""Fields that hold paths of a machine; no replay reads them."""


def golden(history: WorkflowHistory) -> str:
    """The text of a history as temporal/histories keeps them."""
    return json.dumps(_scrubbed(json.loads(history.to_json())), indent=1, sort_keys=True) + "\n"


def read_history(path: Path) -> WorkflowHistory:
    """A history from a file, ours or one that Temporal's own tools wrote.

    Raises HistoryUnavailableError.
    """
    try:
        text = path.read_text(encoding="utf-8")
        history = WorkflowHistory.from_json(path.stem, text)
    except OSError as error:
        raise HistoryUnavailableError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, TypeError, KeyError) as error:
        raise HistoryUnavailableError(f"{path} holds no history of an execution: {error}") from None
    if not history.events or history.events[0].event_type != _FIRST:
        raise HistoryUnavailableError(f"{path} holds no history from its beginning.")
    return history


def _scrubbed(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _scrubbed(item) for key, item in value.items() if key not in _DROPPED}
    if isinstance(value, list):
        return [_scrubbed(item) for item in value]
    return "recorder" if isinstance(value, str) and _PROCESS.fullmatch(value) else value
