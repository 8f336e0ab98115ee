"""The runbook's table of ids names every workflow kind that has an execution or a schedule."""

import re

from cli.work_handlers.registry import ROUTES
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.fingerprints import ROOT

_ID = re.compile(r"`([a-z-]+)/[^`]+`")


def _ids() -> list[str]:
    text = (ROOT / "temporal" / "RUNBOOK.md").read_text(encoding="utf-8")
    table = text[text.index("| What | Workflow id") : text.index("## Connect")]
    return _ID.findall(table)


def test_every_workflow_kind_stands_in_the_table_once() -> None:
    listed = _ids()
    assert sorted(listed) == sorted(workflow_kind.value for workflow_kind in WorkflowKind)
    assert {workflow_kind.value for workflow_kind in ROUTES} <= set(listed)
