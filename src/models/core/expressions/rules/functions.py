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
         "The first that is not null; a path that ends on its way is null here.",
         "coalesce(trigger.nick, trigger.name)", "Ada"),
        ("has", "has(a.b)", "Whether the key is there; its value may be null.",
         "has(trigger.nick)", False),
        ("orValue", "a.?b.orValue(c)", "The value of an optional, or what is given instead.",
         'trigger.?nick.orValue("none")', "none"),
        ("or", "a.or(b)", "The first optional that holds a value.",
         "trigger.?nick.or(trigger.?name).value()", "Ada"),
        ("value", "a.value()", "The value of an optional; an error when it holds none.",
         "trigger.?name.value()", "Ada"),
        ("hasValue", "a.hasValue()", "Whether an optional holds a value.",
         "trigger.?nick.hasValue()", False),
        ("optMap", "a.optMap(x, …)", "The optional of what the expression makes of the value.",
         "trigger.?price.optMap(x, x * 2.0).orValue(0.0)", 25.0),
        ("optFlatMap", "a.optFlatMap(x, …)", "As optMap, for an expression that gives an optional.",
         "optional.of(trigger).optFlatMap(x, x.?nick).hasValue()", False),
        ("optional.of", "optional.of(a)", "An optional that holds the value.",
         "optional.of(1).orValue(0)", 1),
        ("optional.none", "optional.none()", "An optional that holds none.",
         "optional.none().orValue(0)", 0),
        ("optional.ofNonZeroValue", "optional.ofNonZeroValue(a)",
         "An optional that holds the value unless it is empty, zero or false.",
         'optional.ofNonZeroValue("").orValue("empty")', "empty"),
        # Lists and maps
        ("size", "size(a)", "How many characters, elements or keys.", "size(trigger.tags)", 2),
        ("all", "list.all(x, …)", "Whether it is true of every element.",
         "trigger.tags.all(x, size(x) == 3)", True),
        ("exists", "list.exists(x, …)", "Whether it is true of an element.",
         'trigger.tags.exists(x, x == "vip")', True),
        ("exists_one", "list.exists_one(x, …)", "Whether it is true of exactly one element.",
         'trigger.tags.exists_one(x, x == "vip")', True),
        ("filter", "list.filter(x, …)", "The elements of which it is true.",
         'trigger.tags.filter(x, x != "new")', ["vip"]),
        ("map", "list.map(x, …)", "What the expression makes of every element; of a map, its keys.",
         "trigger.tags.map(x, x.upperAscii())", ["NEW", "VIP"]),
        # Types
        ("int", "int(a)", "A whole number, of text or cut off.", 'int("7")', 7),
        ("uint", "uint(a)", "A whole number from 0.", "uint(7)", 7),
        ("double", "double(a)", "A number with a fraction. Whole and other numbers do not mix.",
         "double(2) * trigger.price", 25.0),
        ("string", "string(a)", "The value as text.", "string(7)", "7"),
        ("bool", "bool(a)", "True or false, of text.", 'bool("true")', True),
        ("bytes", "bytes(a)", "The UTF-8 bytes of a text; a result shows them in Base64.",
         'bytes("a")', "YQ=="),
        ("dyn", "dyn(a)", "The value without its type, so that types may mix.",
         "[dyn(1), dyn(trigger.name)]", [1, "Ada"]),
        ("type", "type(a)", "The type of a value, to compare with.", "type(1) == int", True),
        # Text
        ("contains", "text.contains(part)", "Whether the part stands in it.",
         'trigger.name.contains("d")', True),
        ("startsWith", "text.startsWith(part)", "Whether it begins so.",
         'trigger.name.startsWith("A")', True),
        ("endsWith", "text.endsWith(part)", "Whether it ends so.",
         'trigger.name.endsWith("a")', True),
        ("matches", "text.matches(pattern)", "Whether a part of it matches the pattern (RE2).",
         'trigger.name.matches("^[A-Z][a-z]+$")', True),
        ("charAt", "text.charAt(place)", "The character at a place, from 0.",
         "trigger.name.charAt(0)", "A"),
        ("format", "text.format(list)",
         "The values in place of `%s`, `%d`, `%f`, `%.2f`, `%e`, `%b`, `%x` and `%o`.",
         '"%s: %.2f".format([trigger.name, trigger.price])', "Ada: 12.50"),
        ("indexOf", "text.indexOf(part)", "Where the part is first, or -1.",
         'trigger.name.indexOf("d")', 1),
        ("lastIndexOf", "text.lastIndexOf(part)", "Where the part is last, or -1.",
         'trigger.name.lastIndexOf("a")', 2),
        ("join", "list.join(between)", "The texts of a list as one.", 'trigger.tags.join(", ")',
         "new, vip"),
        ("split", "text.split(at)", "The parts between.", '"a,b".split(",")', ["a", "b"]),
        ("replace", "text.replace(old, new)", "The text with every old part new.",
         '"a-b".replace("-", "+")', "a+b"),
        ("substring", "text.substring(from, to)",
         "The characters from one place to before another, or to the end.",
         "trigger.name.substring(1)", "da"),
        ("trim", "text.trim()", "Without white space at both ends.", '" Ada ".trim()', "Ada"),
        ("lowerAscii", "text.lowerAscii()", "With its letters A to Z in lower case.",
         "trigger.name.lowerAscii()", "ada"),
        ("upperAscii", "text.upperAscii()", "With its letters a to z in upper case.",
         "trigger.name.upperAscii()", "ADA"),
        ("reverse", "text.reverse()", "Backwards.", "trigger.name.reverse()", "adA"),
        ("strings.quote", "strings.quote(text)", "In quotes, with what needs it escaped.",
         "strings.quote(trigger.name)", '"Ada"'),
        # Numbers
        ("math.greatest", "math.greatest(a, b, …)", "The greatest, also of a list.",
         "math.greatest(1, 3, 2)", 3),
        ("math.least", "math.least(a, b, …)", "The least, also of a list.",
         "math.least([1, 3])", 1),
        ("math.abs", "math.abs(a)", "Without its sign.", "math.abs(-3)", 3),
        ("math.ceil", "math.ceil(a)", "The next whole number above.",
         "math.ceil(trigger.price)", 13.0),
        ("math.floor", "math.floor(a)", "The next whole number below.",
         "math.floor(trigger.price)", 12.0),
        ("math.round", "math.round(a)", "The nearest whole number; a half goes away from zero.",
         "math.round(trigger.price)", 13.0),
        ("math.trunc", "math.trunc(a)", "Without its fraction.", "math.trunc(trigger.price)", 12.0),
        ("math.sign", "math.sign(a)", "-1, 0 or 1.", "math.sign(-3)", -1),
        ("math.sqrt", "math.sqrt(a)", "The square root.", "math.sqrt(9.0)", 3.0),
        ("math.isNaN", "math.isNaN(a)", "Whether it is not a number.", "math.isNaN(1.0)", False),
        ("math.isInf", "math.isInf(a)", "Whether it is infinite.", "math.isInf(1.0)", False),
        ("math.isFinite", "math.isFinite(a)", "Whether it is neither.", "math.isFinite(1.0)", True),
        ("math.bitAnd", "math.bitAnd(a, b)", "The bits that both have.", "math.bitAnd(6, 3)", 2),
        ("math.bitOr", "math.bitOr(a, b)", "The bits that one has.", "math.bitOr(6, 3)", 7),
        ("math.bitXor", "math.bitXor(a, b)", "The bits that only one has.", "math.bitXor(6, 3)", 5),
        ("math.bitNot", "math.bitNot(a)", "The bits it has not.", "math.bitNot(1)", -2),
        ("math.bitShiftLeft", "math.bitShiftLeft(a, n)", "The bits moved up.",
         "math.bitShiftLeft(1, 3)", 8),
        ("math.bitShiftRight", "math.bitShiftRight(a, n)", "The bits moved down.",
         "math.bitShiftRight(8, 3)", 1),
        # Time
        ("timestamp", "timestamp(text)", "A moment, of ISO 8601 with an offset.",
         'timestamp("2026-01-31T09:00:00Z") + duration("24h")', "2026-02-01T09:00:00.000Z"),
        ("duration", "duration(text)", "A span of `h`, `m`, `s` and `ms`; a result is in seconds.",
         'duration("1h30m")', 5400),
        ("getFullYear", "moment.getFullYear(zone)",
         "The year in an IANA time zone, by default in UTC, as for all that follow.",
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
        ("getHours", "moment.getHours(zone)", "The hour; of a duration, all its hours.",
         f'{_MOMENT}.getHours("Europe/Berlin")', 10),
        ("getMinutes", "moment.getMinutes(zone)", "The minute; of a duration, all its minutes.",
         'duration("1h30m").getMinutes()', 90),
        ("getSeconds", "moment.getSeconds(zone)", "The second; of a duration, all its seconds.",
         f"{_MOMENT}.getSeconds()", 6),
        ("getMilliseconds", "moment.getMilliseconds(zone)", "The milliseconds of the second.",
         f"{_MOMENT}.getMilliseconds()", 7),
    )
)  # fmt: skip
