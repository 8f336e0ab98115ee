"""The head of an answer leaves with its body, and nothing waits longer than a turn of the loop."""

import asyncio
from collections.abc import Iterable

from typing_extensions import override

from api.joined_writes import JoinedWrites


class _Calls(asyncio.Transport):
    """Notes each call that would be one of the system."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.closed_after: int | None = None

    @override
    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent.append(bytes(data))

    @override
    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.sent.append(b"".join(list_of_data))

    @override
    def close(self) -> None:
        self.closed_after = len(self.sent)


async def test_head_and_body_are_one_call() -> None:
    calls, writes = _writes()
    writes.write(b"head ")
    writes.write(b"body")
    assert calls.sent == [b"head body"]
    await asyncio.sleep(0)
    assert calls.sent == [b"head body"]


async def test_a_head_without_a_body_leaves_with_the_turn() -> None:
    calls, writes = _writes()
    writes.write(b"head of a stream")
    assert calls.sent == []
    await asyncio.sleep(0)
    assert calls.sent == [b"head of a stream"]
    writes.write(b"event")
    await asyncio.sleep(0)
    assert calls.sent == [b"head of a stream", b"event"]


async def test_at_most_one_write_waits() -> None:
    calls, writes = _writes()
    for number in range(5):
        writes.write(str(number).encode())
    assert calls.sent == [b"01", b"23"]
    await asyncio.sleep(0)
    assert calls.sent == [b"01", b"23", b"4"]


async def test_what_waits_is_sent_before_the_end() -> None:
    calls, writes = _writes()
    writes.write(b"head")
    writes.close()
    assert calls.sent == [b"head"]
    assert calls.closed_after == 1


def _writes() -> tuple[_Calls, JoinedWrites]:
    calls = _Calls()
    return calls, JoinedWrites(asyncio.get_running_loop(), calls)
