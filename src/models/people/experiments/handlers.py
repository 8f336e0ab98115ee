"""Handlers by which other nouns speak of the experiments whose variants are theirs.

A noun of a higher wing registers one handler for its type of target; a type without one has units
that are counted here.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from models.people.experiments.rows import ExperimentRow
from models.people.experiments.rules import Counts, TargetType, Variant
from runtime.database import UnitOfWork


class TargetHandler(Protocol):
    """The noun that owns the variants of a type, as it is asked and told."""

    async def check(
        self, work: UnitOfWork, target_key: str | None, variants: Sequence[Variant]
    ) -> None:
        """Raises ValidationError for a target or a variant that there is none of."""

    async def changed(self, work: UnitOfWork, row: ExperimentRow) -> None:
        """An experiment was made or changed."""

    async def counts(
        self, work: UnitOfWork, rows: Sequence[ExperimentRow]
    ) -> Mapping[tuple[str, str], Counts]:
        """Figures by the id of the experiment, as text, and that of the variant."""


_handlers: dict[TargetType, TargetHandler] = {}


def on_target(kind: TargetType, handler: TargetHandler) -> None:
    """Register the handler of a type of target."""
    _handlers[kind] = handler


def handler_of(kind: TargetType) -> TargetHandler | None:
    """The handler of a type of target, if it has one."""
    return _handlers.get(kind)
