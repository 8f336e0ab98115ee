"""Decisions in `docs/adr`: listed once, one page, four sections, and referred to by number."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.source import ROOT

DECISIONS = ROOT / "docs" / "adr"
INDEX = DECISIONS / "README.md"
SECTIONS = ["Context", "Decision", "Alternatives", "Consequence"]
MOST_LINES, LONGEST_LINE = 60, 100

TITLE = re.compile(r"# (\d{4}) (.+)\n")
QUESTION = re.compile(r"(How|What|Who|Whose|Which|Why|Where|When|Whether)\b")
POINTING = re.compile(r"\b(What|Whatever|Whether|Who|Whoever|Those)\b")
"""Capitals occur only where a sentence begins."""
ENTRY = re.compile(r"^- \[(\d{4})\]\(([^)]+)\) (.+)$", re.MULTILINE)
REFERENCE = re.compile(r"(?:\bADR |docs/adr/)(\d+)(-[a-z0-9-]+)?")
KINDS = {".md", ".py", ".sh", ".sql", ".toml", ".yaml", ".yml"}


def pages() -> list[Path]:
    return sorted(path for path in DECISIONS.glob("*.md") if path != INDEX)


def faults(name: str, text: str) -> list[str]:
    """Reasons for which a page is not one of ours."""
    lines = text.splitlines()
    title = TITLE.match(text)
    number, subject = title.groups() if title else ("", "")
    sections = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
    checks = {
        "has a title without the number of its file": not number or not name.startswith(number),
        "has a title that is a question": bool(QUESTION.match(subject)),
        "has other sections": sections != SECTIONS,
        "is longer than a page": len(lines) > MOST_LINES,
        "has a long line": any(len(line) > LONGEST_LINE for line in lines),
        "begins a sentence with a pronoun": bool(POINTING.search(text)),
    }
    return [fault for fault, is_so in checks.items() if is_so]


def references() -> Iterator[tuple[Path, str]]:
    """Files and the references to decisions in them, as they stand there."""
    rooms = ("src", "tests", "temporal", "bench", "docs")
    below = (path for room in rooms for path in (ROOT / room).rglob("*"))
    for path in (*below, *ROOT.glob("*")):
        if path.suffix in KINDS or path.name in {"Makefile", "Dockerfile"}:
            for found in REFERENCE.finditer(path.read_text(encoding="utf-8")):
                yield path, found.group().removeprefix("ADR ").removeprefix("docs/adr/")


def test_each_page_is_in_form() -> None:
    found = [
        f"{path.name} {fault}" for path in pages() for fault in faults(path.name, path.read_text())
    ]
    assert not found, "\n".join(found)


def test_no_number_is_used_twice() -> None:
    numbers = Counter(path.name[:4] for path in pages())
    assert [number for number, times in numbers.items() if times > 1] == []


def test_the_index_lists_each_page_once_by_its_title() -> None:
    titles = [TITLE.match(path.read_text()) for path in pages()]
    expected = [
        (*title.groups(), path.name)
        for path, title in zip(pages(), titles, strict=True)
        if title is not None
    ]
    listed = [(number, title, name) for number, name, title in ENTRY.findall(INDEX.read_text())]
    assert sorted(listed) == expected


def test_each_decision_that_is_referred_to_exists() -> None:
    names = [path.stem for path in pages()]
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path, name in references()
        if not any(known == name or ("-" not in name and known[:4] == name) for known in names)
    ]
    assert not missing, "\n".join(missing)


def test_a_fault_is_seen() -> None:
    page = "# 0001 Jobs\n\n" + "\n".join(f"## {section}\n\nText.\n" for section in SECTIONS)
    assert faults("0001-jobs.md", page) == []
    assert faults("0002-jobs.md", page) == ["has a title without the number of its file"]
    assert faults("0001-jobs.md", page.replace("Jobs", "How jobs end")) == [
        "has a title that is a question"
    ]
    assert faults("0001-jobs.md", page.replace("## Alternatives", "## Options")) == [
        "has other sections"
    ]
    assert faults("0001-jobs.md", page + "\n" * MOST_LINES) == ["is longer than a page"]
    assert faults("0001-jobs.md", page + "x" * (LONGEST_LINE + 1)) == ["has a long line"]
    assert faults("0001-jobs.md", page + "Who asks is told.") == [
        "begins a sentence with a pronoun"
    ]
