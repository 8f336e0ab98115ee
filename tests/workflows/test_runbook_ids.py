"""The runbook's table of ids names every family that has an execution or a schedule."""

import re

from cli.families.registry import ROUTES
from runtime.temporal.families import Family
from tests.support.fingerprints import ROOT

_ID = re.compile(r"`([a-z-]+)/[^`]+`")


def _ids() -> list[str]:
    text = (ROOT / "temporal" / "RUNBOOK.md").read_text(encoding="utf-8")
    table = text[text.index("| What | Workflow id") : text.index("## Connect")]
    return _ID.findall(table)


def test_every_family_stands_in_the_table_once() -> None:
    listed = _ids()
    assert sorted(listed) == sorted(family.value for family in Family)
    assert {family.value for family in ROUTES} <= set(listed)
