"""The commands of temporal/RUNBOOK.md, as they stand there."""

import re
from pathlib import Path

from tests.support.fingerprints import ROOT

_SECTION = re.compile(r"^##? (?P<title>.+)\n(?P<text>(?:(?!^## ).*\n)*)", re.MULTILINE)
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks_of(page: Path) -> dict[str, list[str]]:
    """The blocks of each section of a page by its title."""
    sections = _SECTION.finditer(page.read_text(encoding="utf-8"))
    return {found["title"]: _BLOCK.findall(found["text"]) for found in sections}


BLOCKS = blocks_of(ROOT / "temporal" / "RUNBOOK.md")
"""The blocks of each section of the runbook."""
