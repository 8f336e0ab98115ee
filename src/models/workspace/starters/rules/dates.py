"""Days of sample records, which are told from the day they are made on. Pure."""

from datetime import date, timedelta

from pydantic import JsonValue

_TODAY = "today"


def dated(value: JsonValue, today: date) -> JsonValue:
    """The value with days in the place of `{"today": 3}`, which means in three days."""
    if isinstance(value, dict):
        if value.keys() == {_TODAY} and isinstance(days := value[_TODAY], int):
            return (today + timedelta(days=days)).isoformat()
        return {key: dated(part, today) for key, part in value.items()}
    if isinstance(value, list):
        return [dated(part, today) for part in value]
    return value
