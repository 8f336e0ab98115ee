"""A plugin of pytest that writes how long each test took to the file that MUTANTS_DURATIONS names.

Of the process that hears of all tests: its workers write nothing.
"""

import json
import os
from collections import Counter
from pathlib import Path

import pytest

_seconds: Counter[str] = Counter()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add the set-up, the call and the end of a test."""
    _seconds[report.nodeid] += report.duration  # type: ignore[assignment]  # parts of a second


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what was heard."""
    if not hasattr(session.config, "workerinput"):
        Path(os.environ["MUTANTS_DURATIONS"]).write_text(json.dumps(_seconds), encoding="utf-8")
