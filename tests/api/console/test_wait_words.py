"""The words that say which pause or limit a run waits for."""

from typing import Any

import pytest

from api.console.runs.listing import wait_words

SINCE = {"since": "2026-01-01T00:00:00.000Z"}


@pytest.mark.parametrize(
    ("waiting_for", "words"),
    [
        (
            {"kind": "paused", "subject": "connection", "cause": "person", "reason": "It moves."},
            "A connection it uses is paused: It moves.",
        ),
        (
            {"kind": "paused", "subject": "automation", "cause": "circuit_breaker", "reason": ""},
            "Circuit breaker open.",
        ),
        (
            {"kind": "limited", "subject": "host", "host": "api.example", "cause": "limit"},
            "Waiting for a rate limit on api.example.",
        ),
        (
            {"kind": "limited", "subject": "connection", "subjectId": "1", "cause": "limit"},
            "Waiting for a rate limit on a connection.",
        ),
        (
            {
                "kind": "limited",
                "subject": "host",
                "host": "api.example",
                "cause": "answer",
                "until": "2026-01-01T10:20:30.000Z",
            },
            "Rate limited by api.example, until 2026-01-01 10:20 UTC.",
        ),
    ],
)
def test_a_wait_is_shown_in_a_sentence(waiting_for: dict[str, Any], words: str) -> None:
    assert wait_words({**waiting_for, **SINCE}) == words
