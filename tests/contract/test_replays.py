"""Every operation with an `Idempotency-Key` gives its answer again, even after its rows were
deleted.
"""

from typing import Any

import httpx2
import pytest

from cli.supervisor.development import DevelopmentIssuer
from tests.contract.callers import caller_of
from tests.contract.catalogue import EXAMPLES
from tests.contract.conftest import Furnishing
from tests.contract.furnished import Furnished
from tests.contract.operations import Operation, call, example_body, operations
from tests.support.cells import cells
from tests.support.client import Client

pytestmark = pytest.mark.takes(seconds=20)

KEYED = [one for one in operations() if one.access["idempotent"] and not EXAMPLES[one.id].works]
KEYED.reverse()
"""What stands deeper comes first in the document's reverse order."""


def removes(operation: Operation) -> bool:
    """Whether the call takes away what further calls would need."""
    return operation.method == "delete" or EXAMPLES[operation.id].ends


class KeyedCall:
    """A call under a key, to be made again by the same caller with the same body."""

    def __init__(self, made: Furnished, operation: Operation, caller: Client) -> None:
        self._made = made
        self._caller = caller
        self.operation = operation
        self._body: Any = example_body(operation, made)

    async def make(self) -> httpx2.Response:
        headers = {"Idempotency-Key": self.operation.id}
        one, body = self.operation, self._body
        return await call(self._caller, one, self._made, headers=headers, body=body)


@pytest.mark.long
async def test_every_answer_is_given_again_after_everything_was_deleted(
    furnished: Furnishing, issuer: DevelopmentIssuer
) -> None:
    made = await furnished()
    answers: list[tuple[KeyedCall, httpx2.Response]] = []
    for operation in sorted(KEYED, key=removes):
        keyed = KeyedCall(made, operation, caller_of(made, operation, issuer))
        answer = await keyed.make()
        if not answer.is_success:
            made = await furnished()
            keyed = KeyedCall(made, operation, caller_of(made, operation, issuer))
            answer = await keyed.make()
        assert answer.is_success, f"{operation.id}: {answer.text}"
        answers.append((keyed, answer))
    with cells() as named:
        for keyed, answer in answers:
            with named(keyed.operation.id):
                again = await keyed.make()
                assert again.headers.get("Idempotency-Replayed") == "true", again.text
                assert (again.status_code, again.content) == (answer.status_code, answer.content)
