"""The values of each field kind, in words, with an example."""

from typing import Any, NamedTuple

from models.core.base import EXAMPLE_ID
from models.data.fields.rules.kinds import FieldKind


class KindNote(NamedTuple):
    """The content of a field of the kind in words, and a value as the API shows it."""

    says: str
    value: Any


KIND_NOTES: dict[FieldKind, KindNote] = {
    FieldKind.TEXT: KindNote("One line of text.", "Blue chair"),
    FieldKind.LONG_TEXT: KindNote("Text of several lines.", "First line\nsecond line"),
    FieldKind.RICH_TEXT: KindNote("Text in Markdown.", "**Fragile**, see [label](https://x.test)"),
    FieldKind.NUMBER: KindNote("A number.", 12.5),
    FieldKind.CURRENCY: KindNote("An amount of money in the currency of the field.", 129.9),
    FieldKind.PERCENT: KindNote("A share; 12.5 is shown as 12.5 %.", 12.5),
    FieldKind.RATING: KindNote("A whole number from 0 to 10.", 4),
    FieldKind.DURATION: KindNote("A span of time in milliseconds.", 5_400_000),
    FieldKind.CHECKBOX: KindNote("True or false.", True),
    FieldKind.DATE: KindNote("A day.", "2026-01-31"),
    FieldKind.DATETIME: KindNote("A moment in UTC.", "2026-01-31T09:00:00.000Z"),
    FieldKind.TIME: KindNote("A time of day, `HH:MM` or `HH:MM:SS`.", "09:30"),
    FieldKind.SELECT: KindNote("The key of one option.", "open"),
    FieldKind.MULTI_SELECT: KindNote("The keys of options.", ["open", "done"]),
    FieldKind.STATUS: KindNote("The key of one option; options are in three groups.", "open"),
    FieldKind.PERSON: KindNote("The ids of members.", [EXAMPLE_ID]),
    FieldKind.EMAIL: KindNote("An e-mail address.", "ada@example.com"),
    FieldKind.URL: KindNote("An http or https URL.", "https://example.com/chair"),
    FieldKind.PHONE: KindNote("A phone number.", "+49 30 901820"),
    FieldKind.FILE: KindNote("The `fileId`s of uploaded files.", [EXAMPLE_ID]),
    FieldKind.JSON: KindNote("Any JSON value.", {"width": 40, "tags": ["oak"]}),
    FieldKind.LOCATION: KindNote(
        "A place in degrees; `label` may be left out.",
        {"lat": 52.52, "lng": 13.405, "label": "Berlin"},
    ),
    FieldKind.RELATION: KindNote(
        "The ids of records of another database, written and shown in `relations`.", [EXAMPLE_ID]
    ),
    FieldKind.ROLLUP: KindNote("One figure over related records, shown in `computed`.", 389.7),
    FieldKind.LOOKUP: KindNote(
        "The values of a field of related records, shown in `computed`.", ["open", "done"]
    ),
    FieldKind.FORMULA: KindNote(
        "What a CEL expression makes of the record, shown in `computed`.", 259.8
    ),
    FieldKind.BUTTON: KindNote("Nothing: pressing it runs an action.", None),
    FieldKind.TIMER: KindNote(
        "The milliseconds of the record's completed time entries, and the entry that runs, in"
        " `computed`; queries and formulas take `totalMs`.",
        {"totalMs": 5_400_000, "runningEntryId": None},
    ),
    FieldKind.AUTO_NUMBER: KindNote("A number of its own for each record, in `system`.", 42),
    FieldKind.CREATED_AT: KindNote("When it was made, in `system`.", "2026-01-31T09:00:00.000Z"),
    FieldKind.UPDATED_AT: KindNote(
        "When it last changed, in `system`.", "2026-01-31T09:00:00.000Z"
    ),
    FieldKind.CREATED_BY: KindNote("The user who made it, in `system`.", EXAMPLE_ID),
    FieldKind.UPDATED_BY: KindNote("The user who changed it last, in `system`.", EXAMPLE_ID),
}
