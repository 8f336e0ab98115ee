"""Docstrings, comments and names of tests are plain: they name their subject, and say one thing."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.source import ROOT, files, place, tree

QUESTION = re.compile(r"(What|Whether|Which|Who|Whose|Whom|How|Why|Where|When|Since|Those)\b")
POINTING = re.compile(r"\b[Tt]hose (of|who|that)\b|; how many\.?\s*$")
MOST_WORDS = 20
"""Words of a first sentence."""

VAGUE = re.compile(
    r"\b(somebody|nobody|anybody|whoever|whatever|somewhere|how many|so many|goes on|go on|going on"
    r"|came in|comes? in|(is|are|be|been) told|given up|gives up|made good|(take|taken|takes) back"
    r")\b",
    re.IGNORECASE,
)
"""Words in place of a client, a process, a number, or of continue, import, notify and undo."""
NAME = re.compile(r"test (what|who|whose|which|where|when|why|how|whether) ")
"""The beginning of a test's name that asks, and does not say what holds."""
REMAINING = {
    "src/api/console": 23,
    "src/api/kernel": 11,
    "src/api/routers": 1,
    "src/models/automation": 18,
    "src/models/content": 3,
    "src/models/core": 6,
    "src/models/data": 7,
    "src/models/messages": 6,
    "src/models/people": 1,
    "src/models/sources": 5,
}
"""Such words and names that each part still has. Numbers only fall."""


def docstrings(module: ast.Module) -> Iterator[ast.Constant]:
    """Strings that stand alone: docstrings of modules, classes and functions, and of constants."""
    for node in ast.walk(module):
        match node:
            case ast.Expr(value=ast.Constant(value=str()) as constant):
                yield constant


def faults(text: str) -> list[str]:
    """Reasons for which a docstring is hard to read."""
    first = re.split(r"[.:;](?:\s|$)", text.strip(), maxsplit=1)[0]
    found = []
    if QUESTION.match(text.strip()):
        found.append("begins with a question")
    if POINTING.search(text):
        found.append("points at something it does not name")
    if len(first.split()) > MOST_WORDS:
        found.append(f"has more than {MOST_WORDS} words in its first sentence")
    return found


def test_docstrings_are_plain() -> None:
    found = [
        f"{place(path, constant)} {fault}"
        for path in files()
        for constant in docstrings(tree(path))
        for fault in faults(str(constant.value))
    ]
    assert not found, "\n".join(found)


def test_a_fault_is_seen() -> None:
    assert faults("Whether it is so.") == ["begins with a question"]
    assert faults("The rows, those of others too; how many.")
    assert faults(" ".join(["word"] * (MOST_WORDS + 1)))
    assert not faults("The rows of a workspace. Whether they are read does not matter.")


def prose(path: Path) -> Iterator[str]:
    """The docstrings and comments of a file, each in one line, and the names of its tests.

    Nothing of a file without a vague word: most have none, and syntax trees are slow to make.
    """
    source = path.read_text(encoding="utf-8")
    words = " ".join(re.split(r"[\s_#]+", source))
    if not VAGUE.search(words) and not NAME.search(words):
        return
    for node in ast.walk(tree(path)):
        match node:
            case ast.Expr(value=ast.Constant(value=str() as text)):
                yield " ".join(text.split())
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if name.startswith("test_"):
                    yield name.replace("_", " ")
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = (token.string for token in tokens if token.type == tokenize.COMMENT)
    yield " ".join(comment.lstrip("# ") for comment in comments)


def vague(text: str) -> list[str]:
    """The vague words of a text; a test's name that asks is one, too."""
    words = [match[0] for match in VAGUE.finditer(text)]
    return [*words, text] if NAME.match(text) else words


def _part(path: Path) -> str:
    """The folder of tests, the domain of a model or an API, or the room."""
    room, *folders = path.relative_to(ROOT).parent.parts
    return "/".join([room, *folders[: 2 if folders[:1] in (["models"], ["api"]) else 1]])


def test_prose_names_its_subjects() -> None:
    found: dict[str, list[str]] = {}
    others = [path for room in ("bench", "tests") for path in sorted((ROOT / room).rglob("*.py"))]
    for path in [*files(), *others]:
        for text in prose(path):
            found.setdefault(_part(path), []).extend(
                f"{path.relative_to(ROOT)}: {word!r}" for word in vague(text)
            )
    counts = {part: len(words) for part, words in found.items() if words}
    new = [part for part, count in counts.items() if count > REMAINING.get(part, 0)]
    assert not new, "\n".join(word for part in new for word in found[part])
    assert counts == REMAINING, "fewer are left: lower the numbers"


def test_a_vague_word_is_seen() -> None:
    assert vague("Tell whoever waits how many are left.") == ["whoever", "how many"]
    assert vague("test what is read") == ["test what is read"]
    assert vague("test a wait goes on") == ["goes on"]
    assert not vague("Notify the callers that wait of the number that is left.")
