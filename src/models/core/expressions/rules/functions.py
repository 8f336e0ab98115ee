"""Functions of expressions: CEL's own, its extensions and `coalesce`, each with an example.

The extensions are those for strings, math and optionals. Sources: the CEL language definition, and
the extensions of cel-go. A test evaluates every example.
"""

from typing import Any, NamedTuple


class Function(NamedTuple):
    """One function: how it is called, what it gives, and an example with its result.

    Examples read `trigger`, which is `EXAMPLE_TRIGGER`.
    """

    name: str
    call: str
    says: str
    example: str
    result: Any


EXAMPLE_TRIGGER = {"name": "Ada", "price": 12.5, "tags": ["new", "vip"], "note": None}

_MOMENT = 'timestamp("2026-01-31T09:05:06.007Z")'

FUNCTIONS: tuple[Function, ...] = tuple(
    Function(*row)
    for row in (
        # Values that may not be there
        ("coalesce", "coalesce(a, b, …)",
         "The first value that is not null. A missing path counts as null.",
         "coalesce(trigger.nick, trigger.name)", "Ada"),
        ("has", "has(a.b)", "Whether the key exists; its value may be null.",
         "has(trigger.nick)", False),
        ("orValue", "a.?b.orValue(c)", "The value of an optional, or a default.",
         'trigger.?nick.orValue("none")', "none"),
        ("or", "a.or(b)", "The first optional with a value.",
         "trigger.?nick.or(trigger.?name).value()", "Ada"),
        ("value", "a.value()", "The value of an optional; an error if it has none.",
         "trigger.?name.value()", "Ada"),
        ("hasValue", "a.hasValue()", "Whether an optional has a value.",
         "trigger.?nick.hasValue()", False),
        ("optMap", "a.optMap(x, …)", "Applies an expression to the value of an optional.",
         "trigger.?price.optMap(x, x * 2.0).orValue(0.0)", 25.0),
        ("optFlatMap", "a.optFlatMap(x, …)", "Like optMap, if the expression returns an optional.",
         "optional.of(trigger).optFlatMap(x, x.?nick).hasValue()", False),
        ("optional.of", "optional.of(a)", "An optional with the value.",
         "optional.of(1).orValue(0)", 1),
        ("optional.none", "optional.none()", "An optional without a value.",
         "optional.none().orValue(0)", 0),
        ("optional.ofNonZeroValue", "optional.ofNonZeroValue(a)",
         "An optional with the value, unless it is empty, zero or false.",
         'optional.ofNonZeroValue("").orValue("empty")', "empty"),
        # Lists and maps
        ("size", "size(a)", "The number of characters, elements or keys.", "size(trigger.tags)", 2),
        ("all", "list.all(x, …)", "Whether it is true for every element.",
         "trigger.tags.all(x, size(x) == 3)", True),
        ("exists", "list.exists(x, …)", "Whether it is true for any element.",
         'trigger.tags.exists(x, x == "vip")', True),
        ("exists_one", "list.exists_one(x, …)", "Whether it is true for exactly one element.",
         'trigger.tags.exists_one(x, x == "vip")', True),
        ("filter", "list.filter(x, …)", "The elements for which it is true.",
         'trigger.tags.filter(x, x != "new")', ["vip"]),
        ("map", "list.map(x, …)", "Applies an expression to each element, or key of a map.",
         "trigger.tags.map(x, x.upperAscii())", ["NEW", "VIP"]),
        # Types
        ("int", "int(a)", "Converts to a whole number; decimals are cut off.", 'int("7")', 7),
        ("uint", "uint(a)", "Converts to a whole number of 0 or more.", "uint(7)", 7),
        ("double", "double(a)", "Converts to a decimal; whole and decimal numbers don't mix.",
         "double(2) * trigger.price", 25.0),
        ("string", "string(a)", "Converts to text.", "string(7)", "7"),
        ("bool", "bool(a)", "Converts text to true or false.", 'bool("true")', True),
        ("bytes", "bytes(a)", "The UTF-8 bytes of a text; shown as Base64.",
         'bytes("a")', "YQ=="),
        ("dyn", "dyn(a)", "The value without its type, so that types can be mixed.",
         "[dyn(1), dyn(trigger.name)]", [1, "Ada"]),
        ("type", "type(a)", "The type of a value, for comparison.", "type(1) == int", True),
        # Text
        ("contains", "text.contains(part)", "Whether the text contains another text.",
         'trigger.name.contains("d")', True),
        ("startsWith", "text.startsWith(part)", "Whether the text starts with another text.",
         'trigger.name.startsWith("A")', True),
        ("endsWith", "text.endsWith(part)", "Whether the text ends with another text.",
         'trigger.name.endsWith("a")', True),
        ("matches", "text.matches(pattern)", "Whether part of the text matches a pattern (RE2).",
         'trigger.name.matches("^[A-Z][a-z]+$")', True),
        ("charAt", "text.charAt(place)", "The character at an index, from 0.",
         "trigger.name.charAt(0)", "A"),
        ("format", "text.format(list)",
         "Inserts the values for `%s`, `%d`, `%f`, `%.2f`, `%e`, `%b`, `%x` and `%o`.",
         '"%s: %.2f".format([trigger.name, trigger.price])', "Ada: 12.50"),
        ("indexOf", "text.indexOf(part)", "The index of the first match, or -1.",
         'trigger.name.indexOf("d")', 1),
        ("lastIndexOf", "text.lastIndexOf(part)", "The index of the last match, or -1.",
         'trigger.name.lastIndexOf("a")', 2),
        ("join", "list.join(between)", "Joins the texts of a list.", 'trigger.tags.join(", ")',
         "new, vip"),
        ("split", "text.split(at)", "Splits the text into a list.", '"a,b".split(",")', ["a", "b"]),
        ("replace", "text.replace(old, new)", "Replaces every match in the text.",
         '"a-b".replace("-", "+")', "a+b"),
        ("substring", "text.substring(from, to)",
         "The characters from one index up to another, or to the end.",
         "trigger.name.substring(1)", "da"),
        ("trim", "text.trim()", "Removes white space at both ends.", '" Ada ".trim()', "Ada"),
        ("lowerAscii", "text.lowerAscii()", "Converts A to Z to lower case.",
         "trigger.name.lowerAscii()", "ada"),
        ("upperAscii", "text.upperAscii()", "Converts a to z to upper case.",
         "trigger.name.upperAscii()", "ADA"),
        ("reverse", "text.reverse()", "Backwards.", "trigger.name.reverse()", "adA"),
        ("strings.quote", "strings.quote(text)", "Quotes and escapes the text.",
         "strings.quote(trigger.name)", '"Ada"'),
        # Numbers
        ("math.greatest", "math.greatest(a, b, …)", "The greatest number, also of a list.",
         "math.greatest(1, 3, 2)", 3),
        ("math.least", "math.least(a, b, …)", "The least number, also of a list.",
         "math.least([1, 3])", 1),
        ("math.abs", "math.abs(a)", "The absolute value.", "math.abs(-3)", 3),
        ("math.ceil", "math.ceil(a)", "Rounds up to a whole number.",
         "math.ceil(trigger.price)", 13.0),
        ("math.floor", "math.floor(a)", "Rounds down to a whole number.",
         "math.floor(trigger.price)", 12.0),
        ("math.round", "math.round(a)", "Rounds to a whole number; halves away from zero.",
         "math.round(trigger.price)", 13.0),
        ("math.trunc", "math.trunc(a)", "Cuts off decimals.", "math.trunc(trigger.price)", 12.0),
        ("math.sign", "math.sign(a)", "The sign: -1, 0 or 1.", "math.sign(-3)", -1),
        ("math.sqrt", "math.sqrt(a)", "The square root.", "math.sqrt(9.0)", 3.0),
        ("math.isNaN", "math.isNaN(a)", "Whether it is not a number.", "math.isNaN(1.0)", False),
        ("math.isInf", "math.isInf(a)", "Whether it is infinite.", "math.isInf(1.0)", False),
        ("math.isFinite", "math.isFinite(a)", "Whether it is finite.", "math.isFinite(1.0)", True),
        ("math.bitAnd", "math.bitAnd(a, b)", "Bitwise AND.", "math.bitAnd(6, 3)", 2),
        ("math.bitOr", "math.bitOr(a, b)", "Bitwise OR.", "math.bitOr(6, 3)", 7),
        ("math.bitXor", "math.bitXor(a, b)", "Bitwise XOR.", "math.bitXor(6, 3)", 5),
        ("math.bitNot", "math.bitNot(a)", "Bitwise NOT.", "math.bitNot(1)", -2),
        ("math.bitShiftLeft", "math.bitShiftLeft(a, n)", "Shifts bits left.",
         "math.bitShiftLeft(1, 3)", 8),
        ("math.bitShiftRight", "math.bitShiftRight(a, n)", "Shifts bits right.",
         "math.bitShiftRight(8, 3)", 1),
        # Time
        ("timestamp", "timestamp(text)", "Converts ISO 8601 text with an offset to a timestamp.",
         'timestamp("2026-01-31T09:00:00Z") + duration("24h")', "2026-02-01T09:00:00.000Z"),
        ("duration", "duration(text)", "A duration in `h`, `m`, `s` and `ms`; shown in seconds.",
         'duration("1h30m")', 5400),
        ("getFullYear", "moment.getFullYear(zone)",
         "The year in an IANA time zone. Default, as for all below: UTC.",
         f"{_MOMENT}.getFullYear()", 2026),
        ("getMonth", "moment.getMonth(zone)", "The month, from 0.", f"{_MOMENT}.getMonth()", 0),
        ("getDate", "moment.getDate(zone)", "The day of the month, from 1.",
         f"{_MOMENT}.getDate()", 31),
        ("getDayOfMonth", "moment.getDayOfMonth(zone)", "The day of the month, from 0.",
         f"{_MOMENT}.getDayOfMonth()", 30),
        ("getDayOfWeek", "moment.getDayOfWeek(zone)", "The day of the week; Sunday is 0.",
         f"{_MOMENT}.getDayOfWeek()", 6),
        ("getDayOfYear", "moment.getDayOfYear(zone)", "The day of the year, from 0.",
         f"{_MOMENT}.getDayOfYear()", 30),
        ("getHours", "moment.getHours(zone)", "The hour, or the total hours of a duration.",
         f'{_MOMENT}.getHours("Europe/Berlin")', 10),
        ("getMinutes", "moment.getMinutes(zone)", "The minute, or the total minutes of a duration.",
         'duration("1h30m").getMinutes()', 90),
        ("getSeconds", "moment.getSeconds(zone)", "The second, or the total seconds of a duration.",
         f"{_MOMENT}.getSeconds()", 6),
        ("getMilliseconds", "moment.getMilliseconds(zone)", "The milliseconds within the second.",
         f"{_MOMENT}.getMilliseconds()", 7),
    )
)  # fmt: skip
