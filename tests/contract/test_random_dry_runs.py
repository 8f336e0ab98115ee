"""A thousand random calls: each is tried, leaves every table as it is, and then does as it said."""

import random
from typing import Any

import pytest

from cli.supervisor.development import DevelopmentIssuer
from tests.contract.callers import caller_of
from tests.contract.catalogue import EXAMPLES
from tests.contract.conftest import Furnishing
from tests.contract.operations import call, example_body
from tests.contract.test_dry_runs import WRITING, digests, masked, removes, tried
from tests.support.watched import WatchedDatabase

pytestmark = [pytest.mark.takes(seconds=300), pytest.mark.long]

CALLS = 1_000
PER_WORKSPACE = 250
DIGESTED_EVERY = 10
"""A digest of all tables takes longer than a call."""
SEED = 20_261_129
CANDIDATES = [one for one in WRITING if not EXAMPLES[one.id].works and not removes(one)]
_KEEP = "keep"


def disturbed(body: Any, chance: random.Random) -> Any:
    """A body in which values of some keys are left out, replaced or of another kind."""
    if isinstance(body, dict):
        return {
            key: changed
            for key, value in body.items()
            if (changed := _value(value, chance)) is not None or chance.random() < 0.5
        }
    return body


def _value(value: Any, chance: random.Random) -> Any:
    match chance.choice([_KEEP] * 8 + ["none", "text", "number", "deeper"]):
        case "none":
            return None
        case "text":
            return "x" * chance.choice([0, 1, 50, 300])
        case "number":
            return chance.choice([-1, 0, 1, 10**12])
        case "deeper":
            return disturbed(value, chance)
        case _:
            return value


async def test_a_random_call_answers_as_its_dry_run(
    furnished: Furnishing, issuer: DevelopmentIssuer, database: WatchedDatabase
) -> None:
    chance = random.Random(SEED)  # noqa: S311  # the same calls each time
    made = await furnished()
    refused = 0
    for number in range(CALLS):
        if number and number % PER_WORKSPACE == 0:
            made = await furnished()
        operation = chance.choice(CANDIDATES)
        body = disturbed(example_body(operation, made), chance)
        caller = caller_of(made, operation, issuer)
        # The first request in a session stores the profile of its user.
        await caller.get("/v1/me")
        said = f"call {number} of seed {SEED}: {operation.id} {body}"
        before = await digests(database) if number % DIGESTED_EVERY == 0 else None
        answer = await tried(caller, made, operation, body)
        if before is not None:
            assert await digests(database) == before, said
        real = await call(caller, operation, made, body=body)
        assert real.status_code == answer.status_code, f"{said}: {answer.text} {real.text}"
        if real.is_success and real.status_code != 204:
            given, kept = answer.json().get("data"), real.json().get("data")
            assert masked(given) == masked(kept), said
        else:
            refused += 1
            assert real.json().get("error") == answer.json().get("error"), said
    assert CALLS / 20 < refused < CALLS * 19 / 20, "some calls are refused, and some are not"
