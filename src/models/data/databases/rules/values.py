"""What a value of each field kind may be, and the one form in which it is stored (decisions C5).

A check takes the field and a JSON value, returns the stored form and raises `FieldValueError` with
the sentence that follows the value's path. Nothing is coerced: a number in quotes is text.
"""

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from models.data.databases.rules.fields import FieldSpec
from runtime.ids import parse_id

MAX_TEXT = 10_000
MAX_LONG_TEXT = 200_000
MAX_NUMBER = 1e100
MAX_DURATION = 2**53 - 1
MAX_PEOPLE = 100
MAX_FILES = 100
MAX_JSON_DEPTH = 48

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})"
)
_TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?")
_EMAIL = re.compile(r"[^@\s<>()\",;:\\]+@[^@\s.<>()\",;:\\]+([.][^@\s.<>()\",;:\\]+)+")
_SPACE = re.compile(r"\s")
_PHONE = re.compile(r"[0-9+().\-/ x#*]+")


class FieldValueError(Exception):
    """A value its field does not take; the message continues a sentence that begins with where."""


def text(value: Any, *, longest: int = MAX_TEXT) -> str:
    """Text that PostgreSQL can store: no NUL, no half of a surrogate pair."""
    if not isinstance(value, str):
        raise FieldValueError("must be text")
    if len(value) > longest:
        raise FieldValueError(f"must be at most {longest} characters")
    if _UNSTORABLE.search(value):
        raise FieldValueError("contains a character that is not text (NUL or a lone surrogate)")
    return value


def check_text(_field: FieldSpec, value: Any) -> str:
    return text(value)


def check_long_text(_field: FieldSpec, value: Any) -> str:
    return text(value, longest=MAX_LONG_TEXT)


def number(value: Any) -> int | float:
    """A finite JSON number; `true` is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FieldValueError("must be a number")
    if not abs(value) <= MAX_NUMBER:
        raise FieldValueError("must be a finite number of at most 100 digits")
    return value


def check_number(field: FieldSpec, value: Any) -> int | float:
    """A number within the field's `min`, `max` and `precision` (decimals)."""
    checked = number(value)
    lowest, highest = field.settings.get("min"), field.settings.get("max")
    if lowest is not None and checked < lowest:
        raise FieldValueError(f"must be at least {lowest}")
    if highest is not None and checked > highest:
        raise FieldValueError(f"must be at most {highest}")
    precision = field.settings.get("precision")
    if precision is not None and _decimals(checked) > precision:
        raise FieldValueError(f"must have at most {precision} decimals")
    return checked


def _decimals(value: float) -> int:
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    return -exponent if isinstance(exponent, int) and exponent < 0 else 0


def whole_number(value: Any, lowest: int, highest: int) -> int:
    """An integer between two bounds; `3.0` counts as one, as JSON has one kind of number."""
    checked = number(value)
    if checked != int(checked) or not lowest <= checked <= highest:
        raise FieldValueError(f"must be a whole number from {lowest} to {highest}")
    return int(checked)


def check_rating(_field: FieldSpec, value: Any) -> int:
    return whole_number(value, 0, 10)


def check_duration(_field: FieldSpec, value: Any) -> int:
    """Milliseconds."""
    return whole_number(value, 0, MAX_DURATION)


def check_checkbox(_field: FieldSpec, value: Any) -> bool:
    if not isinstance(value, bool):
        raise FieldValueError("must be true or false")
    return value


def day(value: Any) -> date:
    """A calendar day written `YYYY-MM-DD`."""
    if isinstance(value, str) and _DATE.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise FieldValueError("must be a date written YYYY-MM-DD")


def check_date(_field: FieldSpec, value: Any) -> str:
    return day(value).isoformat()


def moment(value: Any) -> datetime:
    """A point in time with its offset from UTC (RFC 3339)."""
    if isinstance(value, str) and _MOMENT.fullmatch(value):
        try:
            return datetime.fromisoformat(value).astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise FieldValueError("must be a date and time with its offset, such as 2026-01-31T09:00:00Z")


def check_datetime(_field: FieldSpec, value: Any) -> str:
    return stored_moment(moment(value))


def stored_moment(value: datetime) -> str:
    """UTC with milliseconds in a fixed width, so that the order of texts is that of moments."""
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def check_time(_field: FieldSpec, value: Any) -> str:
    """`HH:MM` or `HH:MM:SS`; whole minutes are stored without seconds, so equal times are equal."""
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        raise FieldValueError("must be a time written HH:MM or HH:MM:SS")
    return value.removesuffix(":00") if len(value) == 8 else value


def check_option(field: FieldSpec, value: Any) -> str:
    if not isinstance(value, str) or value not in field.option_keys:
        raise FieldValueError(_not_an_option(field))
    return value


def check_options(field: FieldSpec, value: Any) -> list[str]:
    """Option keys, each once, in the order given."""
    if not isinstance(value, list):
        raise FieldValueError("must be a list of option keys")
    if any(not isinstance(key, str) or key not in field.option_keys for key in value):
        raise FieldValueError(_not_an_option(field))
    return list(dict.fromkeys(value))


def _not_an_option(field: FieldSpec) -> str:
    keys = list(field.option_keys)
    shown = ", ".join(keys[:20]) + (", …" if len(keys) > 20 else "")
    return f"must be an option key, one of: {shown}" if keys else "has no options to choose from"


def user(value: Any) -> str:
    """A user id in canonical form."""
    checked = parse_id(value) if isinstance(value, str) else None
    if checked is None:
        raise FieldValueError("must be the id of a user")
    return str(checked)


def check_people(_field: FieldSpec, value: Any) -> list[str]:
    """User ids, each once; whether they are members is for the command to ask."""
    if not isinstance(value, list) or len(value) > MAX_PEOPLE:
        raise FieldValueError(f"must be a list of at most {MAX_PEOPLE} user ids")
    return list(dict.fromkeys(user(entry) for entry in value))


def check_files(field: FieldSpec, value: Any) -> list[str]:
    """File ids, each once; whether they are files of the workspace is for the command to ask."""
    most = field.settings.get("maxFiles") or MAX_FILES
    if not isinstance(value, list) or len(value) > most:
        raise FieldValueError(f"must be a list of at most {most} file ids")
    return list(dict.fromkeys(_file(entry) for entry in value))


def _file(value: Any) -> str:
    checked = parse_id(value) if isinstance(value, str) else None
    if checked is None:
        raise FieldValueError("must be the id of a file")
    return str(checked)


def check_email(_field: FieldSpec, value: Any) -> str:
    if not _EMAIL.fullmatch(text(value, longest=254)):
        raise FieldValueError("must be an e-mail address")
    return str(value)


def check_url(_field: FieldSpec, value: Any) -> str:
    """An absolute http or https URL: other schemes could run code where the value is shown."""
    checked = text(value, longest=2048)
    try:
        parts = urlsplit(checked)
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        valid = False
    if not valid or _SPACE.search(checked):
        raise FieldValueError("must be an http or https URL")
    return checked


def check_phone(_field: FieldSpec, value: Any) -> str:
    checked = text(value, longest=40)
    digits = sum(character.isdigit() for character in checked)
    if digits < 3 or not _PHONE.fullmatch(checked):
        raise FieldValueError("must be a phone number such as +49 30 901820")
    return checked


def check_json(_field: FieldSpec, value: Any) -> Any:
    check_storable(value, MAX_JSON_DEPTH)
    return value


def check_storable(value: Any, depth: int) -> None:
    """Refuse what JSONB cannot hold, or what is nested more than `depth` deep."""
    if depth < 0:
        raise FieldValueError("is nested too deep")
    if isinstance(value, dict):
        for key, entry in value.items():
            text(key, longest=MAX_TEXT)
            check_storable(entry, depth - 1)
    elif isinstance(value, list):
        for entry in value:
            check_storable(entry, depth - 1)
    elif isinstance(value, str):
        text(value, longest=MAX_LONG_TEXT)
    elif isinstance(value, bool) or value is None:
        return
    else:
        number(value)


def check_location(_field: FieldSpec, value: Any) -> dict[str, Any]:
    """`{lat, lng, label?}` in degrees (WGS 84)."""
    if not isinstance(value, dict) or not {"lat", "lng"} <= value.keys() <= {"lat", "lng", "label"}:
        raise FieldValueError("must be an object with lat, lng and, if wanted, label")
    if abs(number(value["lat"])) > 90 or abs(number(value["lng"])) > 180:
        raise FieldValueError("must have lat from -90 to 90 and lng from -180 to 180")
    label = value.get("label")
    checked = {"lat": value["lat"], "lng": value["lng"]}
    return checked if label is None else {**checked, "label": text(label, longest=500)}
