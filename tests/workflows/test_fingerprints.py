"""The commands of every workflow are those that running executions expect."""

import difflib
import json
from pathlib import Path

import pytest

from tests.support.fingerprints import BASELINE, committed, fingerprints

ADVICE = """The commands of a workflow have changed:

{difference}

Executions that are running now replay their history against this code, and fail if its commands
differ. So, in this order:
1. Keep the old way for them by `if workflow.patched(<CONSTANT>): <new> else: <old>`, with a
   comment that says when the old way may go.
2. See that tests/workflows/test_replay.py still passes with the histories as they are.
3. Record histories of the new way: python -m tests.support.record_histories
4. Accept the new commands: python -m tests.support.fingerprints
Nothing of this is needed if no platform has run this workflow yet: do 3 and 4 alone."""


def test_the_commands_are_those_of_running_executions() -> None:
    now = fingerprints()
    difference = difflib.unified_diff(
        json.dumps(committed(), indent=2).splitlines(),
        json.dumps(now, indent=2).splitlines(),
        str(BASELINE.name),
        "src/workflows",
        lineterm="",
        n=1,
    )
    assert now == committed(), ADVICE.format(difference="\n".join(difference))


WORKFLOW = """
@workflow.defn
class Example:
    @workflow.run
    async def run(self):
        await transact(Activities.begin)
        await self._middle()
        await workflow.sleep(1)

    async def _middle(self):
        if workflow.patched("quicker"):
            return
        await workflow.execute_activity(Activities.effect, timeout=1)

    def _pure(self):
        return sorted([1])

async def transact(method):
    return await workflow.execute_local_activity_method(method)
"""


@pytest.mark.parametrize(
    ("old", "new", "noticed"),
    [
        ("sorted([1])", "sorted([1, 2])", False),
        ("timeout=1", "timeout=2", False),
        ("await workflow.sleep(1)", "pass", True),
        ("Activities.begin", "Activities.other", True),
        ('"quicker"', '"slower"', True),
        ("await self._middle()", "pass", True),
        ("execute_local_activity_method", "execute_activity_method", True),
        (
            "await transact(Activities.begin)\n        await self._middle()",
            "await self._middle()\n        await transact(Activities.begin)",
            True,
        ),
    ],
)
def test_a_change_is_noticed_if_it_touches_commands(
    tmp_path: Path, old: str, new: str, noticed: bool
) -> None:
    source = tmp_path / "example.py"
    source.write_text(WORKFLOW)
    before = fingerprints(tmp_path)
    assert old in WORKFLOW
    source.write_text(WORKFLOW.replace(old, new))
    assert (fingerprints(tmp_path) != before) is noticed
