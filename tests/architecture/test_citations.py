"""Comments and pages cite documents that are there, by anchors that are there."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.architecture.source import ROOT

DOCS = ROOT / "docs"
PACKAGES = ("src", "tests", "temporal", "docs")
PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md")
KINDS = {".md", ".py", ".sql"}

PAGE = re.compile(r"(?<![\w/.-])(docs/)?((?:[\w-]+/)*[\w-]+\.md)(?:#([\w-]+))?")
"""A page of `docs`. Without `docs/` before it or an anchor behind it, it may be any file."""
FILE = re.compile(r"`((?:src|tests|docs|temporal|bench)/[\w./-]*\w)`")
"""A file or folder of this tree that a page names."""
DECISION = re.compile(r"\bADR (\d+)")
LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]+))?\)")
"""A link of a page to another, to itself, or to a file beside it."""
ELSEWHERE = re.compile(
    r"\b[Dd]ecisions? [A-D]\d|\b[Pp]romises? I\d|\b[Dd]esign (?:\d|I\d)|\b[Rr]eliability [A-G]\d"
    r"|\([CDGI]\d{1,2}(?:, [CDGI]\d{1,2})*\)|\b[Gg]uarantees? G\d|\(interface, "
)
"""Rules by the numbers of documents that the repository does not have."""


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of the headings of a page, as GitHub makes them."""
    text = re.sub(
        r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", one).lower().replace(" ", "-") for one in headings)


def fault(page: Path, anchor: str | None) -> str | None:
    """The reason why a page, or a heading of it, cannot be looked up."""
    if not page.exists():
        return "no such document"
    return "no such heading" if anchor and anchor not in anchors(page) else None


def faults(path: Path, text: str) -> Iterator[tuple[str, str]]:
    """The citations in a file that lead nowhere, each with the reason."""
    for found in ELSEWHERE.finditer(text):
        yield found.group(), "a document of elsewhere"
    for found in DECISION.finditer(text):
        if not any(DOCS.glob(f"adr/{found[1]}-*.md")):
            yield found.group(), "no such decision"
    for found in PAGE.finditer(text):
        package, name, anchor = found.groups()
        linked = text.endswith("](", 0, found.start())
        if (package or (anchor and not linked)) and (reason := fault(DOCS / name, anchor)):
            yield found.group(), reason
    if path.suffix == ".md":
        yield from _faults_of_page(path, text)


def _faults_of_page(path: Path, text: str) -> Iterator[tuple[str, str]]:
    for found in FILE.finditer(text):
        if not (ROOT / found[1]).exists():
            yield found.group(), "no such file"
    for found in LINK.finditer(text):
        name, anchor = found.groups()
        page = path.parent / name if name else path
        if reason := fault(page, anchor if page.suffix == ".md" else None):
            yield found.group(), reason


def cited() -> Iterator[Path]:
    yield from (ROOT / page for page in PAGES)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*")):
            if path.suffix in KINDS and path != Path(__file__):
                yield path


def test_each_citation_has_a_target() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {citation}: {reason}"
        for path in cited()
        for citation, reason in faults(path, path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


def test_a_fault_is_seen() -> None:
    def reasons(text: str, name: str = "some.py") -> list[str]:
        return [reason for _, reason in faults(DOCS / name, text)]

    assert reasons("States (interface.md#run-states, ADR 0001; docs/bundles.md).") == []
    assert reasons("States (interface.md#no-states).") == ["no such heading"]
    assert reasons("Held by architecture.md#no-promise.") == ["no such heading"]
    assert reasons(f"As docs/nothing.md says, ADR {9999}.") == [
        "no such decision",
        "no such document",
    ]
    assert reasons("[it](nothing.md) [it](#nothing) [it](glossary.md#nothing)", "some.md") == [
        "no such document",
        "no such document",
        "no such heading",
    ]
    assert reasons("`src/models/tables.py` `src/nothing.py` `src/models`", "some.md") == [
        "no such file"
    ]
    for text in ("(decisions C8)", "promises I3, I4", "design 3", "(C8, D2)", "(interface, Item)"):
        assert reasons(text) == ["a document of elsewhere"], text
