"""Words that no text for people has: pages, messages, refusals, descriptions and documents."""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.source import ROOT, SRC, files, place, tree

DENIED: Mapping[str, str] = {
    r"rests|resting": "queued, paused",
    r"stands?": "is, appears",
    r"goes on|go on": "resumes, continues, in progress",
    r"came in|comes? in": "imported, received",
    r"(take|taken|takes) back": "undo",
    r"made good": "retried",
    r"so many": "a number",
    r"(is|are|be|been) told": "is notified",
    r"somebody|nobody|anybody|whoever": "someone, a name, no one",
    r"(?<!there )(is|are) no (?!longer|more)\w+": "is not a valid",
    r"as it was written": "nothing",
    r"(is|are) gone": "was deleted, not found",
}
"""The denied words, and better ones."""
DENY_LIST = re.compile(rf"\b({'|'.join(DENIED)})\b", re.IGNORECASE)
CODE = re.compile(r"`[^`]*`|```.*|\w+\.\w+|\{\{ .*? \}\}")
"""Names of the API and of code, which are no prose."""

Text = tuple[str, str]
"""A place, and the text there."""


def page_texts() -> Iterator[Text]:
    """The lines of templates, without comments, statements and the names of values."""
    for path in sorted(SRC.rglob("*.html")):
        content = re.sub(r"\{#.*?#\}", _blank, path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for number, line in enumerate(content.splitlines(), 1):
            literals = re.findall(
                r'"([^"]* [^"]*)"', " ".join(re.findall(r"\{[{%].*?[%}]\}", line))
            )
            yield f"{path.relative_to(ROOT)}:{number}", re.sub(r"\{[{%].*?[%}]\}", "…", line)
            for literal in literals:
                yield f"{path.relative_to(ROOT)}:{number}", literal


def _blank(comment: re.Match[str]) -> str:
    return "\n" * comment[0].count("\n")


def script_texts() -> Iterator[Text]:
    """The lines of our scripts that are no comments."""
    for path in sorted(SRC.rglob("*.js")):
        if path.parent.name in {"vendor", "static"}:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if not line.lstrip().startswith(("//", "*", "/*")):
                yield f"{path.relative_to(ROOT)}:{number}", line


_SAID = re.compile(
    r"(?:\b(?:say|fail|Error|Refused)\((?:[\w.]+, )?|problem(?:\.value)? = "
    r"""|h\("p", \{ class: "(?:quiet|fault|problem)"[^}]*\}, )"""
    r"""(["`])((?:(?!\1).)*)\1"""
)
_ELEMENT = re.compile(
    r"<(p|span|div)\b[^>]*"
    r"""(?:class="(?:notice|alert|fault|problem|calm|quiet)(?: [^"]*)?"|role="(?:status|alert)")"""
    r"[^>]*>(.*?)</\1>"
)
_PLACES = re.compile(r"\$\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|\{\{.*?\}\}")


def said_texts() -> Iterator[Text]:
    """What pages say: messages of scripts, and notices, alerts and quiet lines of templates.

    Values and links are an `X`.
    """
    for path in sorted(SRC.rglob("*.js")):
        if path.parent.name == "static":
            continue
        content = path.read_text(encoding="utf-8")
        for found in _SAID.finditer(content):
            text = _PLACES.sub("X", found[2])
            if text and "${" not in text:
                yield _line(path, content, found.start()), text
    for path in sorted(SRC.rglob("*.html")):
        content = path.read_text(encoding="utf-8")
        for found in _ELEMENT.finditer(content):
            for part in re.split(r"\{% *(?:elif|else|if|endif)[^%]*%\}", found[2]):
                text = re.sub(r"\{\{ ?ui\.icon\(.*?\) ?\}\}", "", part)
                text = re.sub(r"<[^>]*>", "", re.sub(r"<(a|button)\b[^>]*>.*?</\1>", "X", text))
                text = _PLACES.sub("X", text).strip()
                if text[:1].isupper():
                    yield _line(path, content, found.start()), text


def _line(path: Path, content: str, at: int) -> str:
    return f"{path.relative_to(ROOT)}:{content.count(chr(10), 0, at) + 1}"


def messages() -> Iterator[Text]:
    """The strings of several words in our code, but for docstrings and assertions."""
    for path in files():
        nodes = list(ast.walk(tree(path)))
        alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        alone |= {id(node.msg) for node in nodes if isinstance(node, ast.Assert)}
        for node in nodes:
            match node:
                case ast.Constant(value=str() as value) if id(node) not in alone and " " in value:
                    yield place(path, node), value


def descriptions() -> Iterator[Text]:
    """The names and descriptions of the OpenAPI document."""
    yield from _described(json.loads((ROOT / "openapi.json").read_text(encoding="utf-8")), "")


def _described(part: Any, at: str) -> Iterator[Text]:
    if isinstance(part, list):
        for entry in part:
            yield from _described(entry, at)
    elif isinstance(part, dict):
        for key, value in part.items():
            if key in {"description", "summary", "title"} and isinstance(value, str):
                yield at, value
            else:
                yield from _described(value, f"{at}/{key}")


def document_texts() -> Iterator[Text]:
    """The lines of documents but for decisions, which tell what was thought at their time."""
    folders: Mapping[Path, str] = {
        ROOT: "*.md",
        ROOT / "docs": "*.md",
        ROOT / "docs/operations": "**/*.md",
        ROOT / "temporal": "**/*.md",
        SRC: "**/*.md",
    }
    for folder, pattern in folders.items():
        for path in sorted(folder.glob(pattern)):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                yield f"{path.relative_to(ROOT)}:{number}", line


@pytest.mark.parametrize(
    "texts", [page_texts, script_texts, messages, descriptions, document_texts]
)
def test_no_text_has_a_denied_word(texts: Any) -> None:
    denied = [
        f"{at}: {word[0]!r} in {text}"
        for at, text in texts()
        if (word := DENY_LIST.search(CODE.sub("", text)))
    ]
    assert not denied, "\n".join(denied)


def test_denied_words_are_seen() -> None:
    texts = (
        *("It rests.", "It stands here.", "It goes on.", "It came in.", "Take it back: take back."),
        *("It is made good.", "So many runs", "Ada is told.", "For nobody.", "It is no currency."),
        *("As it was written.", "It is gone."),
    )
    read_as_one = " ".join(texts).lower()
    unseen = [word for word in DENIED if not re.search(rf"\b({word})\b", read_as_one)]
    assert unseen == []
    assert [text for text in texts if not DENY_LIST.search(text)] == []
    for text in ("The arrest", "is no longer there", "restore", "no more than 5", "standard"):
        assert not DENY_LIST.search(text), text
    for read, least in ((page_texts, 2_000), (messages, 2_000), (descriptions, 2_000)):
        assert sum(1 for _ in read()) > least


SENTENCE = re.compile(
    r"(?i:someone else)|[.!?] [A-Z“]"
    r"|^(?:Enter|Choose|Select|Fix|Reload|Try|Press|Drop|Add|Open|Create|Use|Sign|Go|Import|Publish|Enable|See)\b"
    r"|\b(?:is|are|was|were|has|have|can|cannot|must|will|could|does|do|keeps?|needs?"
    r"|starts?|[Ss]yncs|stays?|wrote"
    r"|gets?|\w+n't)\b"
)
"""Several sentences, an imperative, or a finite verb; else it is a state, as `Draft saved`."""


def ends_rightly(text: str) -> bool:
    """True for sentences with a full stop, and for states without one."""
    if text.endswith(("X", "…", ":")) or text == "X.":
        return True
    has_stop = text.rstrip("”)").endswith((".", "!", "?"))
    return has_stop is (SENTENCE.search(text) is not None)


def test_sentences_end_with_a_full_stop_and_states_do_not() -> None:
    wrong = [f"{at}: {text}" for at, text in said_texts() if not ends_rightly(text)]
    assert not wrong, "\n".join(wrong)


def test_other_ends_are_seen() -> None:
    right = ("Draft saved", "Fix this problem first.", "X is computed.", "Saved. View it.", "No X")
    assert [text for text in right if not ends_rightly(text)] == []
    for text in right:
        other = text[:-1] if text.endswith(".") else f"{text}."
        assert not ends_rightly(other), other
    assert sum(1 for _ in said_texts()) > 150
