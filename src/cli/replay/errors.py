"""The end of commands that have no history to judge: their words, their exit code, muted logs."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from temporalio.service import RPCError

from cli.console import complain
from runtime.settings import SettingsError

UNAVAILABLE = 2
"""Exit code: there is no history to judge, which says nothing about the code."""


class HistoryUnavailableError(Exception):
    """No history was found, or it cannot be read; the message says what to do."""

    retryable = False


@contextmanager
def reported_errors() -> Iterator[None]:
    """Say why there is no history to judge, and exit with code 2."""
    try:
        yield
    except (HistoryUnavailableError, SettingsError, ConnectionError) as error:
        complain(str(error))
    except RPCError as error:
        complain(f"Temporal refused the question: {error.message}")
    else:
        return
    raise typer.Exit(UNAVAILABLE) from None


@contextmanager
def sdk_logs_muted() -> Iterator[None]:
    """Keep what the SDK logs to itself: what a workflow raises is part of the verdict."""
    logger = logging.getLogger("temporalio")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
