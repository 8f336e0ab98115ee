"""The parts of a guide: topics, and the requests of its example, which a test sends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One request of an example. `{name}` in it stands for what an earlier step kept.

    `answers` is a part of the answer; `keeps` says where in the answer each kept value stands.
    """

    request: str
    body: Any = None
    says: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200
    answers: Any = None
    keeps: Mapping[str, str] = field(default_factory=dict)
    by: Literal["key", "nobody", "administrator"] = "key"


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One page: paragraphs, facts in a line each, the components it explains, and an example."""

    name: str
    says: str
    facts: Sequence[tuple[str, str]] = ()
    shapes: Sequence[str] = ()
    steps: Sequence[Step] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Guide:
    """A section. The steps of its topics follow each other."""

    slug: str
    says: str
    topics: Sequence[Topic]
