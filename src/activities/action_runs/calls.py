"""The steps whose work is a run: how each calls one, and how it ends."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from activities.automation_runs.nodes.called_automation import (
    call_automation,
    called_end,
    called_run,
)
from activities.automation_runs.nodes.called_import import (
    call_import,
    called_import,
    import_end,
)
from activities.automation_runs.nodes.called_refresh import (
    call_refresh,
    called_refresh,
    refresh_end,
)
from activities.automation_runs.nodes.invocation import NodeResult
from activities.contracts import CalledRun
from models.automation.action_runs.execution import ActionRunHeader
from models.automation.action_runs.rules import PlannedStep
from models.automation.actions.rules.configs import ActionKind
from models.core.base import JsonObject
from runtime.database import UnitOfWork


@dataclass(frozen=True, slots=True)
class Call:
    """The call of a run by a step, and its end.

    `begin` gives None when the step waits; `awaited` is then the run, and `end` what gives its
    result or raises its failure, None while it is open.
    """

    begin: Callable[
        [UnitOfWork, ActionRunHeader, PlannedStep, JsonObject], Awaitable[NodeResult | None]
    ]
    awaited: Callable[[UnitOfWork, ActionRunHeader, PlannedStep], Awaitable[CalledRun]]
    end: Callable[
        [UnitOfWork, ActionRunHeader, PlannedStep], Awaitable[Callable[[], NodeResult] | None]
    ]


CALLS: Mapping[ActionKind, Call] = {
    ActionKind.IMPORT_RESOURCE: Call(call_import, called_import, import_end),
    ActionKind.REFRESH_DATA_SOURCE: Call(call_refresh, called_refresh, refresh_end),
    ActionKind.RUN_AUTOMATION: Call(call_automation, called_run, called_end),
}
"""Kinds whose work is a run."""
