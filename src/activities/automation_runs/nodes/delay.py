"""The seconds a delay node waits."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from models.automation.automation_runs.errors import NodeError
from models.automation.automations.rules.graph.configs import DelayConfig
from models.automation.automations.rules.graph.configs.types import MAX_WAIT_SECONDS
from models.core.base import JsonObject
from models.core.schedules.timezones import moment_of


def seconds_to_wait(parameters: JsonObject, now: float) -> float:
    """Seconds from `now` (the workflow's time, seconds since the epoch) until the delay is over.

    A moment without an offset is read in the node's `timezone`; a moment in the past waits 0 s.
    Raises NodeError for a wait longer than a run may last.
    """
    config = DelayConfig.model_validate(parameters)
    if config.seconds is not None:
        return config.seconds
    assert config.until is not None, "the config has seconds or until"
    moment = datetime.fromisoformat(config.until)
    if moment.tzinfo is None:
        moment = moment_of(moment, ZoneInfo(config.timezone or "UTC"))
    seconds = (moment - datetime.fromtimestamp(now, UTC)).total_seconds()
    if seconds > MAX_WAIT_SECONDS:
        raise NodeError("validation_error", "A delay can last 30 days at most.")
    return max(0.0, seconds)
