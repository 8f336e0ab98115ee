"""Guides to the parts of the platform, with examples, beyond the shapes of the reference.

Each is a Markdown file beside this one. Facts from the rules of the platform are here, under the
names of their placeholders in the guides.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import runtime.errors
from api.reference.guides.parser import Facts, Guide, Topic, read_guide
from models.people.experiments.rules import TRANSITIONS, WHY_IGNORED
from runtime.errors import PlatformError

_SLUGS = (
    "console",
    "graph",
    "runs",
    "run-operations",
    "incidents",
    "pauses",
    "databases",
    "records",
    "dry-runs",
    "forms",
    "sharing",
    "time",
    "experiments",
    "errors",
)
"""In the order of the navigation."""


@cache
def guides() -> Sequence[Guide]:
    """Every guide, in the order of the navigation."""
    facts = {
        "experiment-states": _experiment_states(),
        "ignored-events": [(f"`{reason}`", says) for reason, says in WHY_IGNORED.items()],
    }
    topics = {"errors": [_error(one) for one in _error_classes()]}
    folder = Path(__file__).parent
    return [read_guide(folder / f"{slug}.md", facts, topics) for slug in _SLUGS]


def _experiment_states() -> Facts:
    return [
        (f"`{state}`", ", ".join(f"`{one}`" for one in sorted(following)) or "nothing")
        for state, following in TRANSITIONS.items()
    ]


def _error_classes() -> Iterator[type[PlatformError]]:
    for one in vars(runtime.errors).values():
        if isinstance(one, type) and issubclass(one, PlatformError) and one is not PlatformError:
            yield one


def _error(one: type[PlatformError]) -> Topic:
    """A code, its status, when it is answered and what to do."""
    headers = ", ".join(f"`{name}: {value}`" for name, value in one.headers.items())
    facts = [("Status", f"`{one.status}`"), ("`_tag`", f"`{one.tag}`"), ("What to do", one.advice)]
    if headers:
        facts.append(("Headers", headers))
    return Topic(name=one.code, says=" ".join((one.__doc__ or "").split()), facts=facts)
