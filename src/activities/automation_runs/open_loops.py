"""Loops that iterate, as this process knows them: parameters that can no longer change."""

from dataclasses import dataclass
from typing import Any

from activities.automation_runs.memory_cache import LruCache
from models.automation.automations.rules.graph.configs import CONFIGS, ForEachConfig, RepeatConfig
from models.automation.automations.rules.graph.kinds import NodeKind
from models.automation.automations.rules.planner.protocol import NodeRef
from models.core.base import Id, JsonObject

LoopConfig = ForEachConfig | RepeatConfig


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """A loop that was opened, with all its items."""

    config: LoopConfig
    indexes: tuple[int, ...] = ()
    """The iterations that run; empty when all do (decisions D3)."""

    @property
    def items(self) -> list[Any] | None:
        """The items the iterations are given; None for a repeat."""
        return self.config.items if isinstance(self.config, ForEachConfig) else None

    @property
    def count(self) -> int | None:
        """The number of iterations, unless they are decided one by one."""
        if self.indexes:
            return self.indexes[-1] + 1
        return None if self.items is None else len(self.items)

    @property
    def most(self) -> int:
        """The greatest number of iterations."""
        if self.indexes:
            return len(self.indexes)
        if isinstance(self.config, RepeatConfig):
            return self.config.max_iterations
        return len(self.config.items)

    @property
    def parallelism(self) -> int:
        return self.config.parallelism if isinstance(self.config, ForEachConfig) else 1

    @property
    def stops_on_error(self) -> bool:
        return not isinstance(self.config, ForEachConfig) or self.config.on_item_error == "stop"


def read_config(kind: str, parameters: JsonObject) -> LoopConfig:
    """The parameters of a loop, checked. Raises pydantic.ValidationError."""
    config = CONFIGS[NodeKind(kind)].model_validate(parameters)
    assert isinstance(config, ForEachConfig | RepeatConfig), "only loops are opened"
    return config


OpenLoops = LruCache[tuple[Id, NodeRef], OpenLoop]
"""The loops used last, by run and place."""
