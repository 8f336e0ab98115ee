"""Values of each field kind: how they are checked, compared and defaulted. Pure.

A check takes the field and a JSON value, returns the stored form and raises `InvalidValueError`
with the sentence that follows the value's path. Nothing is coerced: a number in quotes is text.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple, NoReturn, cast
from urllib.parse import urlsplit

from models.core import values as core_values
from models.core.filters.grammar import ValueForm
from models.core.problems import nearest_known
from models.data.fields.rules.fields import FieldKind, FieldSpec, FieldValue
from runtime.ids import parse_id

Check = Callable[[FieldSpec, object], FieldValue]


class PlainText(NamedTuple):
    """Texts that are stored as they are: no longer than `longest`, and of a pattern."""

    longest: int
    pattern: re.Pattern[str] | None = None

    def takes(self, texts: Sequence[str]) -> bool:
        """True when all of these are; a text that is not may be a value nevertheless."""
        return core_values.storable_texts(texts, self.longest) and (
            self.pattern is None or all(map(self.pattern.fullmatch, texts))
        )


@dataclass(frozen=True, slots=True)
class KindRule:
    """`check` is None where clients write no value; `searched` values take part in search.

    `form` is that of a field without settings; ask `value_form(spec)` for a field's own. `plain`
    tells of many texts at once that `check` gives each as it is.

    Beyond this entry of a kind, `settings` has what its settings may be, and `value_conversion`
    what its values become in another kind.
    """

    form: ValueForm
    check: Check | None
    searched: bool = False
    plain: PlainText | None = None


MAX_DURATION = 2**53 - 1
MAX_PEOPLE = 100
MAX_FILES = 100
MAX_JSON_DEPTH = 48

_TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?")
_EMAIL = re.compile(r"[^@\s<>()\",;:\\]+@[^@\s.<>()\",;:\\]+([.][^@\s.<>()\",;:\\]+)+")
_SPACE = re.compile(r"\s")
_PLAIN_URL = re.compile(r"https?://[a-z0-9][a-z0-9.-]*(?::[0-9]{1,5})?(?:[/?#][!-~]*)?")
"""URLs that need no more looking at; others are taken apart."""
_PHONE = re.compile(r"[0-9+().\-/ x#*]+")

SHORT_TEXT, LONG_TEXT = PlainText(core_values.MAX_TEXT), PlainText(core_values.MAX_LONG_TEXT)
PLAIN_EMAIL, PLAIN_URL = PlainText(254, _EMAIL), PlainText(2048, _PLAIN_URL)


def check_text(_field: FieldSpec, value: object) -> str:
    return core_values.text(value)


def check_long_text(_field: FieldSpec, value: object) -> str:
    return core_values.text(value, longest=core_values.MAX_LONG_TEXT)


def check_number(field: FieldSpec, value: object) -> int | float:
    """A number within the field's `min`, `max` and `precision` (decimals)."""
    result = core_values.number(value)
    lowest, highest = field.settings.get("min"), field.settings.get("max")
    if lowest is not None and result < lowest:
        raise core_values.InvalidValueError(f"must be at least {lowest}")
    if highest is not None and result > highest:
        raise core_values.InvalidValueError(f"must be at most {highest}")
    precision = field.settings.get("precision")
    if precision is not None and _decimals(result) > precision:
        raise core_values.InvalidValueError(f"must have at most {precision} decimals")
    return result


def _decimals(value: float) -> int:
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    return -exponent if isinstance(exponent, int) and exponent < 0 else 0


def check_rating(_field: FieldSpec, value: object) -> int:
    return core_values.whole_number(value, 0, 10)


def check_duration(_field: FieldSpec, value: object) -> int:
    """Milliseconds."""
    return core_values.whole_number(value, 0, MAX_DURATION)


def check_checkbox(_field: FieldSpec, value: object) -> bool:
    if not isinstance(value, bool):
        raise core_values.InvalidValueError("must be true or false")
    return value


def check_date(_field: FieldSpec, value: object) -> str:
    return core_values.day(value).isoformat()


def check_datetime(_field: FieldSpec, value: object) -> str:
    return core_values.stored_moment(core_values.moment(value))


def check_time(_field: FieldSpec, value: object) -> str:
    """`HH:MM` or `HH:MM:SS`; whole minutes are stored without seconds, so equal times are equal."""
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        raise core_values.InvalidValueError("must be a time written HH:MM or HH:MM:SS")
    return value.removesuffix(":00") if len(value) == 8 else value


def check_option(field: FieldSpec, value: object) -> str:
    """The key of an option that is named by its key or by its name."""
    key = field.option_key(value) if isinstance(value, str) else None
    if key is None:
        raise core_values.InvalidValueError(_not_an_option(field, value))
    return key


def check_options(field: FieldSpec, value: object) -> list[str]:
    """Option keys, each once, in the order given."""
    if not isinstance(value, list):
        raise core_values.InvalidValueError("must be a list of option keys")
    return list(dict.fromkeys(check_option(field, chosen) for chosen in value))


def _not_an_option(field: FieldSpec, value: object) -> str:
    if not field.options:
        return "has no options to choose from"
    keys = nearest_known(value, field.option_keys, field.option_names)
    if isinstance(value, str) and value.strip().casefold() in field.shared_names:
        return f"is the name of several options; use a key; {keys}"
    return f"must be the key or the name of an option; {keys}"


def user(value: object) -> str:
    """A user id in canonical form."""
    checked = parse_id(value) if isinstance(value, str) else None
    if checked is None:
        raise core_values.InvalidValueError("must be the id of a user")
    return str(checked)


def check_people(_field: FieldSpec, value: object) -> list[str]:
    """User ids, each once; whether they are members is for the command to ask."""
    if not isinstance(value, list) or len(value) > MAX_PEOPLE:
        raise core_values.InvalidValueError(f"must be a list of at most {MAX_PEOPLE} user ids")
    return list(dict.fromkeys(user(entry) for entry in value))


def check_files(field: FieldSpec, value: object) -> list[str]:
    """File ids, each once; whether they are files of the workspace is for the command to ask."""
    most = field.settings.get("maxFiles") or MAX_FILES
    if not isinstance(value, list) or len(value) > most:
        raise core_values.InvalidValueError(
            f"must be a list of at most {most} file ids: [fileId, …]"
        )
    return list(dict.fromkeys(_file(entry) for entry in value))


def _file(value: object) -> str:
    checked = parse_id(value) if isinstance(value, str) else None
    if checked is None:
        raise core_values.InvalidValueError(
            "must be the id of a file, which its upload gives as fileId"
        )
    return str(checked)


def check_email(_field: FieldSpec, value: object) -> str:
    if not _EMAIL.fullmatch(core_values.text(value, longest=PLAIN_EMAIL.longest)):
        raise core_values.InvalidValueError("must be an email address")
    return str(value)


def check_url(_field: FieldSpec, value: object) -> str:
    """An absolute http or https URL: other schemes could run code where the value is shown."""
    url = core_values.text(value, longest=PLAIN_URL.longest)
    if _PLAIN_URL.fullmatch(url):
        return url
    try:
        parts = urlsplit(url)
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        valid = False
    if not valid or _SPACE.search(url):
        raise core_values.InvalidValueError("must be an http or https URL")
    return url


def check_phone(_field: FieldSpec, value: object) -> str:
    checked = core_values.text(value, longest=40)
    digits = sum(character.isdigit() for character in checked)
    if digits < 3 or not _PHONE.fullmatch(checked):
        raise core_values.InvalidValueError("must be a phone number such as +49 30 901820")
    return checked


def check_json(_field: FieldSpec, value: object) -> FieldValue:
    core_values.check_storable(value, MAX_JSON_DEPTH)
    return cast("FieldValue", value)


def check_location(_field: FieldSpec, value: object) -> dict[str, Any]:
    """`{lat, lng, label?}` in degrees (WGS 84)."""
    if not isinstance(value, dict) or not {"lat", "lng"} <= value.keys() <= {"lat", "lng", "label"}:
        raise core_values.InvalidValueError("must be an object with lat, lng and, if wanted, label")
    if abs(core_values.number(value["lat"])) > 90 or abs(core_values.number(value["lng"])) > 180:
        raise core_values.InvalidValueError("must have lat from -90 to 90 and lng from -180 to 180")
    label = value.get("label")
    checked = {"lat": value["lat"], "lng": value["lng"]}
    return checked if label is None else {**checked, "label": core_values.text(label, longest=500)}


KIND_RULES: dict[FieldKind, KindRule] = {
    FieldKind.TEXT: KindRule(ValueForm.TEXT, check_text, searched=True, plain=SHORT_TEXT),
    FieldKind.LONG_TEXT: KindRule(ValueForm.TEXT, check_long_text, searched=True, plain=LONG_TEXT),
    FieldKind.RICH_TEXT: KindRule(ValueForm.TEXT, check_long_text, searched=True, plain=LONG_TEXT),
    FieldKind.EMAIL: KindRule(ValueForm.TEXT, check_email, searched=True, plain=PLAIN_EMAIL),
    FieldKind.URL: KindRule(ValueForm.TEXT, check_url, searched=True, plain=PLAIN_URL),
    FieldKind.PHONE: KindRule(ValueForm.TEXT, check_phone, searched=True),
    FieldKind.NUMBER: KindRule(ValueForm.NUMBER, check_number),
    FieldKind.CURRENCY: KindRule(ValueForm.NUMBER, check_number),
    FieldKind.PERCENT: KindRule(ValueForm.NUMBER, check_number),
    FieldKind.RATING: KindRule(ValueForm.NUMBER, check_rating),
    FieldKind.DURATION: KindRule(ValueForm.NUMBER, check_duration),
    FieldKind.CHECKBOX: KindRule(ValueForm.BOOLEAN, check_checkbox),
    FieldKind.DATE: KindRule(ValueForm.DAY, check_date),
    FieldKind.DATETIME: KindRule(ValueForm.MOMENT, check_datetime),
    FieldKind.TIME: KindRule(ValueForm.TIME, check_time),
    FieldKind.SELECT: KindRule(ValueForm.OPTION, check_option),
    FieldKind.STATUS: KindRule(ValueForm.OPTION, check_option),
    FieldKind.MULTI_SELECT: KindRule(ValueForm.OPTIONS, check_options),
    FieldKind.PERSON: KindRule(ValueForm.USERS, check_people),
    FieldKind.FILE: KindRule(ValueForm.FILES, check_files),
    FieldKind.JSON: KindRule(ValueForm.OPAQUE, check_json),
    FieldKind.LOCATION: KindRule(ValueForm.OPAQUE, check_location),
    FieldKind.RELATION: KindRule(ValueForm.RECORDS, None),
    FieldKind.ROLLUP: KindRule(ValueForm.OPAQUE, None),
    FieldKind.LOOKUP: KindRule(ValueForm.VALUES, None),
    FieldKind.FORMULA: KindRule(ValueForm.OPAQUE, None),
    FieldKind.BUTTON: KindRule(ValueForm.OPAQUE, None),
    FieldKind.TIMER: KindRule(ValueForm.NUMBER, None),
    FieldKind.AUTO_NUMBER: KindRule(ValueForm.NUMBER, None),
    FieldKind.CREATED_AT: KindRule(ValueForm.MOMENT, None),
    FieldKind.UPDATED_AT: KindRule(ValueForm.MOMENT, None),
    FieldKind.CREATED_BY: KindRule(ValueForm.USER, None),
    FieldKind.UPDATED_BY: KindRule(ValueForm.USER, None),
}


def is_plain(spec: FieldSpec, column: Sequence[Any]) -> bool:
    """True when the field stores each of these values as it is, and none of them clears it."""
    kinds, rule = set(map(type, column)), KIND_RULES[spec.kind]
    assert rule.check is not None, "clients write this kind"
    if type(None) in kinds or (spec.required and any(map(core_values.is_blank, column))):
        return False
    if kinds == {str}:
        if rule.plain is not None:
            return rule.plain.takes(column)
        column = list(set(column))
    try:
        checked = [rule.check(spec, value) for value in column]
    except core_values.InvalidValueError:
        return False
    # 3 and 3.0 are equal, and are not stored alike.
    return checked == column and set(map(type, checked)) == kinds


class ResultKind(StrEnum):
    """The kind of value that a formula or a rollup gives (setting `resultKind`)."""

    TEXT = "text"
    NUMBER = "number"
    CHECKBOX = "checkbox"
    DATE = "date"
    DATETIME = "datetime"
    JSON = "json"


RESULT_FORMS: dict[object, ValueForm] = {
    ResultKind.TEXT: ValueForm.TEXT,
    ResultKind.NUMBER: ValueForm.NUMBER,
    ResultKind.CHECKBOX: ValueForm.BOOLEAN,
    ResultKind.DATE: ValueForm.DAY,
    ResultKind.DATETIME: ValueForm.MOMENT,
    ResultKind.JSON: ValueForm.OPAQUE,
}


def value_form(spec: FieldSpec) -> ValueForm:
    """The stored form of a field's values; of a formula or rollup, that of its result kind."""
    if spec.kind in {FieldKind.FORMULA, FieldKind.ROLLUP}:
        return RESULT_FORMS.get(spec.settings.get("resultKind"), ValueForm.OPAQUE)
    return KIND_RULES[spec.kind].form


_LITERAL = frozenset(
    {ValueForm.TEXT, ValueForm.DAY, ValueForm.MOMENT, ValueForm.TIME, ValueForm.OPTION}
)
"""Forms whose values are text already; the default of any other is JSON text, such as `5`."""


def default_text(field: FieldSpec, raw: object) -> str | None:
    """The text to keep for a default given as text or as the value itself.

    Raises `InvalidValueError` when the field would not take it as a value.
    """
    if raw is None:
        return None
    rule = KIND_RULES[field.kind]
    if rule.check is None:
        raise core_values.InvalidValueError("cannot be set: the platform writes this kind of field")
    if rule.form in _LITERAL:
        return str(rule.check(field, raw))
    value = _parsed(raw) if isinstance(raw, str) else raw
    kept = json.dumps(rule.check(field, value), ensure_ascii=False)
    if len(kept) > core_values.MAX_TEXT:
        raise core_values.InvalidValueError(f"must be at most {core_values.MAX_TEXT} characters")
    return kept


def default_value(field: FieldSpec) -> FieldValue:
    """The value a new record gets where none is given; None without a default."""
    if field.default is None or KIND_RULES[field.kind].form in _LITERAL:
        return field.default
    value: FieldValue = json.loads(field.default)
    return value


def _parsed(text: str) -> FieldValue:
    try:
        value: FieldValue = json.loads(text, parse_constant=_refuse_default)
    except (ValueError, RecursionError) as error:
        raise core_values.InvalidValueError("must be the JSON text of a value") from error
    return value


def _refuse_default(constant: str) -> NoReturn:
    raise ValueError(constant)
