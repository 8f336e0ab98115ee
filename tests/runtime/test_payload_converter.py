"""Payloads of Temporal: what goes in comes out, and types are studied once."""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from pydantic import TypeAdapter

from runtime.temporal.executions import SharedPayloadConverter, data_converter


@dataclass(frozen=True)
class Contract:
    id: uuid.UUID
    at: datetime
    counts: tuple[int, ...]


VALUE = Contract(uuid.UUID(int=7), datetime(2026, 3, 1, tzinfo=UTC), (1, 2))


async def test_a_contract_survives_the_way_through_a_payload() -> None:
    payloads = await data_converter.encode([VALUE, None, b"bytes"])
    assert await data_converter.decode(payloads, [Contract, type(None), bytes]) == [
        VALUE,
        None,
        b"bytes",
    ]


def test_a_type_is_studied_once_however_many_converters_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (payload,) = SharedPayloadConverter().to_payloads([VALUE])
    assert SharedPayloadConverter().from_payloads([payload], [Contract]) == [VALUE]

    def refuse(*_: object) -> None:
        raise AssertionError("studied again")

    monkeypatch.setattr(TypeAdapter, "__init__", refuse)
    assert SharedPayloadConverter().from_payloads([payload], [Contract]) == [VALUE]
