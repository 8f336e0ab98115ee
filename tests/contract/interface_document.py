"""The interface document (`docs/interface.md`) read as JSON Schemas and tables.

Its shapes are tables or sentences, such as `id`, `label` (strings); `variants` (array of object …).
A word in the plural is the type of all names before it, one in the singular that of the last.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

Schema = dict[str, Any]
Row = dict[str, str]

TEXT = (Path(__file__).parents[2] / "docs" / "interface.md").read_text()

_WORDS = {
    "string": "string", "enumerated": "string", "enum": "string", "scope": "string",
    "web or mobile": "string", "includes": "string", "number": "number", "boolean": "boolean",
    "object": "object", "array": "array", "map": "object",
}  # fmt: skip
_TYPE = re.compile(rf"(?:\d+; )?\b({'|'.join(_WORDS)})(s?)\b")
_NAMES = re.compile(r"`(\w+)`((?:(?:, | and |, and )`\w+`)*)")


def section(title: str) -> str:
    """What stands below a heading, up to the next of its level."""
    level, _, _ = title.partition(" ")
    found = re.search(
        rf"^{re.escape(title)}\n(.*?)(?=^{level} |\Z)", TEXT, re.MULTILINE | re.DOTALL
    )
    assert found, f"the document has no {title}"
    return found[1]


def rows(text: str) -> Iterator[Row]:
    """The rows of the tables in a text, by the titles of their columns."""
    titles: list[str] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            titles = []
        elif not titles:
            titles = _cells(line)
        elif not line.startswith("|---"):
            yield dict(zip(titles, _cells(line), strict=True))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


@cache
def shapes() -> dict[str, str | list[Row]]:
    """The rows or the sentence that describe each shape, by its name in small letters."""
    found: dict[str, str | list[Row]] = {}
    for part in re.split(r"^### ", section("## Resources and their fields"), flags=re.MULTILINE)[
        1:
    ]:
        title, _, text = part.partition("\n")
        table = list(rows(text))
        if table and "Shape" in table[0]:
            found |= {row["Shape"].lower(): row["Fields"] for row in table}
        elif table:
            found[_plain(title)] = table
        else:
            found[_plain(title)] = text.strip().split("\n")[0]
        for name, sentence in re.findall(r"^([A-Z]?\w[\w ]*): (`.*)$", text, re.MULTILINE):
            found[name.lower()] = sentence
    return found


def _plain(title: str) -> str:
    return re.sub(r" \((?!detail).*\)", "", title).replace("(", "").replace(")", "").lower()


def shape(name: str) -> Schema | None:
    """The schema of the shape with this name."""
    return _described(name.lower()) if name.lower() in shapes() else None


def _called(phrase: str) -> Schema | None:
    """The schema of a shape, which a phrase may call by the end of its name alone."""
    name = re.sub(r"(?: with |, |;).*", "", phrase).lower()
    longer = [one for one in shapes() if one.endswith(f" {name}")]
    return shape(name) or (_described(longer[0]) if longer else None)


@cache
def _described(name: str) -> Schema:
    found = shapes()[name]
    if isinstance(found, str):
        return _object(found)
    properties, required = {}, []
    for row in found:
        for key in row["Field"].split(", "):
            properties[key] = _of(key, row["Type"])
            required += [key] if row.get("Required") == "yes" else []
    return {"type": "object", "properties": properties, "required": required}


def answer(text: str) -> Schema | None:
    """The schema of what stands under `data`, from the column of successes."""
    _, _, phrase = text.partition("data: ")
    return _of("", phrase) if phrase else None


def _of(key: str, phrase: str) -> Schema:
    """The schema of one key: of what the phrase says, or of the shape that has its name."""
    words = re.sub(r"(?<!^)(?=[A-Z])", " ", key).lower()
    named = shape(key) or shape(words) if key else None
    several = shape(words.removesuffix("s")) if words.endswith("s") else None
    if named and ("see below" in phrase or phrase in {"", "object"}):
        return named
    if several and phrase in {"", "array"}:
        return {"type": "array", "items": several}
    if phrase.startswith(("array", "map")) and " " in phrase:
        return _many(re.sub(r"^(array|map)s", r"\1", phrase))
    if "`" in phrase:
        return _object(phrase)
    return _called(phrase) or _simple(phrase)


def _many(phrase: str) -> Schema:
    head, _, inner = phrase.partition(" with ")
    if phrase.startswith("map "):
        _, _, value = head.rpartition(" to ")
        return {
            "type": "object",
            "additionalProperties": _object(inner) if inner else _simple(value),
        }
    of = phrase.removeprefix("array of ")
    each = _object(inner) if inner and head.endswith("object") else _called(of) or _simple(of)
    return {"type": "array", "items": each}


def _simple(phrase: str) -> Schema:
    found = _TYPE.search(phrase)
    if found is None or "any value" in phrase:
        return {}
    one = _WORDS[found[1]]
    return {"type": [one, "null"] if "or null" in phrase else one}


def _object(sentence: str) -> Schema:
    """The schema of an object whose keys a sentence lists."""
    properties: dict[str, Schema] = {}
    before, left = "", sentence
    while found := _NAMES.search(left):
        before = left[: found.start()]
        names = re.findall(r"\w+", found[0].replace(" and ", ","))
        phrase, left = _phrase(left[found.end() :])
        ahead = re.search(r"\bnumbers $", before)
        for name in names:
            kind = "numbers" if ahead else phrase
            plural = ahead or re.search(r"\b(?:strings|numbers|objects)\b", phrase)
            properties[name] = _of(name, kind if plural or name == names[-1] else "")
    return {"type": "object", "properties": properties}


def _phrase(text: str) -> tuple[str, str]:
    """What is said of the names before it, and what follows on that."""
    if text.startswith(": "):
        return text[2:], ""
    if text.startswith(" ("):
        depth = 0
        for index, letter in enumerate(text):
            depth += {"(": 1, ")": -1}.get(letter, 0)
            if depth == 0 and index > 0:
                return text[2:index], text[index + 1 :]
    here = text.partition("`")[0]
    said = re.sub(r"(?:,| and| and numbers|, and.*)?\s*$", "", here).lstrip(" ,")
    kept = re.search(r"\bnumbers $", here)
    return said, text[kept.start() if kept else len(here) :]
