"""Loops that iterate, as this process knows them: parameters that can no longer change."""

import json
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from models.automations.rules.configs import CONFIGS, ForEachConfig, RepeatConfig
from models.automations.rules.kinds import NodeKind
from models.automations.rules.protocol import NodeRef
from models.base import Id, JsonObject

KEPT_BYTES = 64 * 1024 * 1024
"""Parameters kept, as JSON; what is beyond is read again when needed."""

LoopConfig = ForEachConfig | RepeatConfig


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """A loop that was opened, with all its items."""

    config: LoopConfig
    chosen: tuple[int, ...] = ()
    """The iterations that run; empty when all do (decisions D3)."""

    @property
    def items(self) -> list[Any] | None:
        """What the iterations are given; None for a repeat."""
        return self.config.items if isinstance(self.config, ForEachConfig) else None

    @property
    def count(self) -> int | None:
        """How many iterations there are, unless they are decided one by one."""
        if self.chosen:
            return self.chosen[-1] + 1
        return None if self.items is None else len(self.items)

    @property
    def most(self) -> int:
        """How many iterations it can come to."""
        if self.chosen:
            return len(self.chosen)
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


class OpenLoops:
    """The loops used last, by run and place."""

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._limit = limit
        self._bytes = 0
        self._loops: OrderedDict[tuple[Id, NodeRef], tuple[OpenLoop, int]] = OrderedDict()

    def known(self, run_id: Id, ref: NodeRef) -> OpenLoop | None:
        """The loop, if this process has it."""
        entry = self._loops.get((run_id, ref))
        if entry is None:
            return None
        self._loops.move_to_end((run_id, ref))
        return entry[0]

    def keep(self, run_id: Id, ref: NodeRef, loop: OpenLoop) -> None:
        """Remember a loop that was just opened or read."""
        self.forget(run_id, ref)
        size = len(json.dumps(loop.items))
        self._loops[run_id, ref] = (loop, size)
        self._bytes += size
        while self._bytes > self._limit and len(self._loops) > 1:
            _, (_, dropped) = self._loops.popitem(last=False)
            self._bytes -= dropped

    def forget(self, run_id: Id, ref: NodeRef) -> None:
        """The loop has ended."""
        _, size = self._loops.pop((run_id, ref), (None, 0))
        self._bytes -= size
