"""The form of a retry after a fix, and the body that it stands for."""

from api.console.entered import Fields, read_as
from models.automation.incidents.shapes import RetryIncident
from models.core.base import JsonObject
from runtime.errors import ValidationError


def retry_of(fields: Fields) -> RetryIncident:
    """The body of the operation. Raises ValidationError."""
    values = values_of(fields)
    if "rate" in values:
        try:
            values["rate"] = float(values["rate"])
        except ValueError:
            raise ValidationError.at("rate", "must be a number") from None
    return read_as(RetryIncident, values)


def values_of(fields: Fields) -> JsonObject:
    """The same as JSON, for the equal call."""
    texts = fields.texts
    values: JsonObject = {
        "version": texts.get("version", "published"),
        "from": texts.get("from", "failed"),
    }
    return {**values, "rate": texts["rate"]} if texts.get("rate") else values
