"""Endpoints that have taken nothing for too long."""

from datetime import UTC, datetime, timedelta

from models.messages.webhook_endpoints.rules import is_given_up

NOW = datetime(2026, 1, 10, tzinfo=UTC)


def test_an_endpoint_is_abandoned_after_three_days_without_a_success() -> None:
    assert is_given_up(NOW - timedelta(days=3), NOW)
    assert not is_given_up(NOW - timedelta(days=3, seconds=-1), NOW)
    assert not is_given_up(None, NOW)
