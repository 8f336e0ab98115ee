"""The commands of temporal/RUNBOOK.md, as they stand there."""

import re

from tests.support.fingerprints import ROOT

_SECTION = re.compile(r"^## (?P<title>.+)\n(?P<text>(?:(?!^## ).*\n)*)", re.MULTILINE)
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)

BLOCKS = {
    found["title"]: _BLOCK.findall(found["text"])
    for found in _SECTION.finditer((ROOT / "temporal" / "RUNBOOK.md").read_text(encoding="utf-8"))
}
"""The blocks of each section by its title."""
