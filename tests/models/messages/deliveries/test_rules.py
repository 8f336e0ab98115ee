"""When a delivery is attempted again."""

import pytest

from models.messages.deliveries.rules import (
    PAUSES,
    Answer,
    DeliveryChannel,
    DeliveryStatus,
    next_pause,
)

AGAIN = Answer(end=None)


@pytest.mark.parametrize("channel", DeliveryChannel)
def test_every_pause_follows_one_attempt(channel: DeliveryChannel) -> None:
    pauses = PAUSES[channel]
    assert [next_pause(channel, number, AGAIN) for number in range(1, len(pauses) + 2)] == [
        *pauses,
        None,
    ]


@pytest.mark.parametrize("end", DeliveryStatus)
def test_after_an_end_there_is_none(end: DeliveryStatus) -> None:
    assert next_pause(DeliveryChannel.PUSH, 1, Answer(end=end)) is None


@pytest.mark.parametrize(("asked", "pause"), [(1, 5), (90, 90), (1e9, 86_400)])
def test_a_receiver_may_ask_for_longer(asked: float, pause: float) -> None:
    answer = Answer(end=None, retry_after=asked)
    assert next_pause(DeliveryChannel.PUSH, 1, answer) == pause
