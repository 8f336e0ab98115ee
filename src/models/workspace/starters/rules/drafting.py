"""Plans by rules: from the words of a description to databases that fit its trade. Pure.

What the description names comes first, in its own words; then what its trade needs besides.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from models.core.base import JsonObject

Label = TypeVar("Label")

MOST_DATABASES = 6
_MOST_STEPS = 3
_MOST_TITLE = 60
_SUFFIXES = "(s|es|e|x|ing|er|ers)?"
"""The endings that may follow a stem where words are not joined."""
_JOINED = frozenset({"de"})
"""Languages that join words: a stem may begin any of them."""


@dataclass(frozen=True, slots=True)
class _Topic:
    """One database of the draft, and what it is called."""

    name: str
    label: str
    singular: str


@dataclass(frozen=True, slots=True)
class _Language:
    """The words in one language."""

    code: str
    place: int
    words: JsonObject

    def say(self, phrase: str, **parts: str) -> str:
        text: str = self.words["phrases"][phrase][self.place]
        return text.format(**parts) if parts else text

    def of(self, labels: Sequence[Label]) -> Label:
        """The label for this language."""
        return labels[self.place]


def drafted(description: str, locale: str | None, words: JsonObject) -> JsonObject:
    """The plan that the rules make of a description; the same each time."""
    text = _plain(description)
    tokens = re.findall(r"[^\W\d_]+", text)
    language = _language(tokens, locale, words)
    trade, called = _trade(tokens, language)
    topics = _topics(tokens, trade, language)
    return {
        "headline": _headline(called, language),
        "nodes": [
            _start_page(description, topics, language),
            _item("dashboard", "overview", language.say("overview"), "📊"),
            _folder(topics, language),
            *_forms(topics, language),
        ],
    }


def instructed(instruction: str, words: JsonObject) -> JsonObject:
    """The plan rules make of an instruction: the databases it names, else a page that holds it."""
    tokens = re.findall(r"[^\W\d_]+", _plain(instruction))
    language = _language(tokens, None, words)
    topics = _topics(tokens, (), language)
    by_name = {one.name: one for one in topics}
    nodes = [_database(one, by_name, language) for one in topics]
    text = " ".join(instruction.split())
    page = _item("page", "page", text[:_MOST_TITLE], "📄", content=[text])
    return {"headline": text, "nodes": nodes or [page]}


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


def _language(tokens: Sequence[str], locale: str | None, words: JsonObject) -> _Language:
    codes: list[str] = words["languages"]
    wanted = (locale or "").lower().replace("_", "-").split("-")[0]
    if wanted not in codes:
        found = {code: sum(one in words["common"][code] for one in tokens) for code in codes}
        wanted = max(codes, key=lambda code: (found[code], -codes.index(code)))
    return _Language(wanted, codes.index(wanted), words)


def _matches(stem: str, tokens: Sequence[str], language: _Language) -> int | None:
    """The place of the first word that has this stem, None without one."""
    stem = _plain(stem)
    suffix = r"\w*" if language.code in _JOINED and len(stem) > 3 else _SUFFIXES
    pattern = re.compile(re.escape(stem) + suffix)
    return next((place for place, one in enumerate(tokens) if pattern.fullmatch(one)), None)


def _trade(tokens: Sequence[str], language: _Language) -> tuple[Sequence[str], str | None]:
    """The topics of the trade that is named first, and what it was called."""
    matches: list[tuple[int, Sequence[str], str]] = []
    for trade in language.words["trades"].values():
        for stem in trade["words"].get(language.code, ()):
            place = _matches(stem, tokens, language)
            if place is not None:
                matches.append((place, trade["topics"], tokens[place]))
    if not matches:
        return language.words["otherwise"], None
    _, topics, called = min(matches, key=lambda match: match[0])
    return topics, called


def _topics(tokens: Sequence[str], trade: Sequence[str], language: _Language) -> list[_Topic]:
    topics: Mapping[str, JsonObject] = language.words["topics"]
    matches: dict[str, tuple[int, str]] = {}
    for name, topic in topics.items():
        for stem, label in topic["words"].get(language.code, {}).items():
            place = _matches(stem, tokens, language)
            if place is not None and (name not in matches or place < matches[name][0]):
                matches[name] = (place, label)
    order = sorted(matches, key=lambda name: matches[name][0])
    order += [name for name in trade if name not in matches]
    usual = {name: language.of(topics[name]["label"]) for name in order}
    labels = {**usual, **{name: label for name, (_, label) in matches.items()}}
    return [
        _Topic(name, labels[name], _one(topics[name], labels[name], language))
        for name in order[:MOST_DATABASES]
    ]


def _one(topic: JsonObject, label: str, language: _Language) -> str:
    """The name of one of them, where that is known of the label."""
    usual: str = language.of(topic["label"])
    one: str = language.of(topic["one"])
    return one if label == usual else label


def _headline(called: str | None, language: _Language) -> str:
    if called is None:
        return language.say("headline", name=language.say("yours"))
    name = called.capitalize() if language.code == "de" else called
    if language.code == "en":
        name = f"your {called}"
    return language.say("headline", name=name)


def _start_page(description: str, topics: Sequence[_Topic], language: _Language) -> JsonObject:
    steps = [language.say("step_look", name=one.label) for one in topics[:_MOST_STEPS]]
    content = [
        language.say("welcome"),
        f"> {' '.join(description.split())}",
        language.say("steps"),
        *steps,
        language.say("step_invite"),
    ]
    return _item("page", "start", language.say("start"), "👋", content=content)


def _item(kind: str, ref: str, label: str, icon: str, **more: object) -> JsonObject:
    return {"type": kind, "ref": ref, "label": label, "icon": icon, **more}


def _folder(topics: Sequence[_Topic], language: _Language) -> JsonObject:
    by_name = {one.name: one for one in topics}
    databases = [_database(one, by_name, language) for one in topics]
    return _item("folder", "data", language.say("data"), "🗂️", children=databases)


def _database(topic: _Topic, present: Mapping[str, _Topic], language: _Language) -> JsonObject:
    described = language.words["topics"][topic.name]
    fields = list(_fields(topic, described["fields"], present, language))
    views = list(_views(fields, language))
    return _item("database", topic.name, topic.label, described["icon"], fields=fields, views=views)


def _fields(
    topic: _Topic, listed: Sequence[Any], present: Mapping[str, _Topic], language: _Language
) -> Iterator[JsonObject]:
    yield {"key": "title", "label": language.say("name"), "kind": "text"}
    for entry in listed:
        if isinstance(entry, str):
            described = language.words["fields"][entry]
            label = language.of(described["label"])
            field = {"key": entry, "label": label, "kind": described["kind"]}
            if "options" in described:
                field["options"] = language.of(described["options"])
            yield field
        elif (target := entry["relation"]) in present and target != topic.name:
            yield {
                "key": target,
                "label": present[target].singular,
                "kind": "relation",
                "target": target,
            }


_VIEWS = (("board", ("status",)), ("calendar", ("date", "datetime")))


def _views(fields: Sequence[JsonObject], language: _Language) -> Iterator[JsonObject]:
    yield {"label": language.say("all"), "kind": "table"}
    for view, kinds in _VIEWS:
        served = next((one["key"] for one in fields if one["kind"] in kinds), None)
        if served is not None:
            yield {"label": language.say(view), "kind": view, "field": served}


def _forms(topics: Sequence[_Topic], language: _Language) -> Iterator[JsonObject]:
    """One form, into the first database that others are asked to fill."""
    described = language.words["topics"]
    for one in topics:
        if described[one.name].get("intake"):
            label = language.say("form", name=one.singular)
            yield _item("form", "intake", label, "📥", databaseRef=one.name)
            return
