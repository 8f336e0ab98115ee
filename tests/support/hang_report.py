"""Reports of failures and hangs while a run of tests continues.

A run that is broken off prints no summary: each failure is named when it happens, and a test that
hangs prints the stacks of its asyncio tasks, which those of threads do not show.
"""

import asyncio
import gc
import os
import threading
from collections.abc import Generator

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key

HANGS_AFTER_SECONDS = 900
"""The longest test takes a third of it on a busy machine."""

_error_output = 2


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Report a test that hangs, with its fixtures."""
    timer = threading.Timer(HANGS_AFTER_SECONDS, report_tasks, [item.nodeid, HANGS_AFTER_SECONDS])
    timer.daemon = True
    timer.start()
    try:
        return (yield)
    finally:
        timer.cancel()


def report_tasks(name: str, seconds: float) -> None:
    """Write the stacks of all asyncio tasks of this process to the output of the run."""
    with os.fdopen(os.dup(_error_output), "w") as file:
        print(f"\n{name} has not ended after {seconds:.0f} s.", file=file)
        for task in [one for one in gc.get_objects() if isinstance(one, asyncio.Task)]:
            if not task.done():
                task.print_stack(file=file)


class FailureNames:
    """Names each failed test when it fails."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Name the test and the last line of its failure."""
        if report.failed:
            reason = report.longreprtext.strip().rpartition("\n")[2]
            self._terminal.write_line(f"\nFAILED {report.nodeid} ({report.when}): {reason[:200]}")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Name failures where the results of all processes arrive."""
    global _error_output  # noqa: PLW0603  # the output that pytest does not capture
    _error_output = config.stash[fault_handler_stderr_fd_key]
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailureNames(terminal))
