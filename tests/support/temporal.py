"""A real Temporal dev server for tests, with the dynamic configuration production has."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from temporalio.common import SearchAttributeKey
from temporalio.testing import WorkflowEnvironment

from cli.supervisor.servers import dynamic_config, temporal_binary
from runtime.temporal.executions import data_converter
from runtime.temporal.workflow_kinds import SearchAttribute


def _options(*extra: str) -> dict[str, Any]:
    arguments = [f"--dynamic-config-value={pair}" for pair in (*dynamic_config(), *extra)]
    return {
        "data_converter": data_converter,
        "dev_server_existing_path": str(temporal_binary()),
        "dev_server_extra_args": arguments,
        "dev_server_startup_timeout": timedelta(seconds=120),
        "search_attributes": [SearchAttributeKey.for_keyword(name) for name in SearchAttribute],
    }


@asynccontextmanager
async def dev_server(*extra: str) -> AsyncIterator[WorkflowEnvironment]:
    """A server whose time is the clock's; `extra` are more values of its configuration."""
    async with await WorkflowEnvironment.start_local(**_options(*extra)) as environment:
        yield environment


@asynccontextmanager
async def time_skipping_server() -> AsyncIterator[WorkflowEnvironment]:
    """A server that skips over the timers of workflows."""
    options = _options("frontend.WorkflowTimeSkippingEnabled=true")
    async with await WorkflowEnvironment.start_time_skipping_v2(**options) as environment:
        yield environment
