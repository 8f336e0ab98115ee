"""How an effect that sends a secret fails, and what of its parameters a run shows."""

import base64
import traceback

import pytest

from activities.automation_runs.nodes.effects import (
    UNSAID,
    credentials,
    discreet,
    without_credentials,
)
from activities.automation_runs.nodes.invocation import failure_of
from models.automation.automation_runs.rules import NodeError
from runtime.errors import ValidationError
from runtime.redaction import Redaction

SECRET = "canary-4f1d"
MARK = "[secret KEY]"
REDACTION = Redaction({SECRET: MARK})


def test_a_known_failure_stays_what_it_is() -> None:
    error = NodeError("http_503", f"busy with {SECRET}", retryable=True, retry_after=3)
    failure = failure_of(discreet(error, REDACTION))
    assert (failure.code, failure.message) == ("http_503", f"busy with {MARK}")
    assert (failure.retryable, failure.retry_after) == (True, 3)
    other = failure_of(discreet(ValidationError.at("x", SECRET), REDACTION))
    assert (other.code, other.message) == ("validation_error", f"x: {MARK}")


def test_the_answer_of_the_other_side_is_left_out() -> None:
    error = NodeError("http_400", "The server returned 400.", quoted="4f1d of canary")
    assert failure_of(error).message == "The server returned 400. Response: 4f1d of canary"
    told = failure_of(discreet(error, REDACTION)).message
    assert told == f"The server returned 400.{UNSAID}"


def test_an_unknown_failure_is_reported_without_its_words() -> None:
    with pytest.raises(ValueError, match="invalid literal") as raised:
        int(SECRET)
    told = discreet(raised.value, REDACTION)
    assert str(told) == "ValueError"
    assert "test_an_unknown_failure" in "".join(traceback.format_tb(told.__traceback__))


@pytest.mark.parametrize(
    ("parameters", "hidden"),
    [
        ({"auth": {"type": "bearer", "token": "token-77"}}, {"token-77"}),
        (
            {"auth": {"type": "basic", "username": "somebody", "password": "pass-77"}},
            {"pass-77", "somebody:pass-77"},
        ),
        ({"auth": {"type": "header", "name": "X-Key", "value": "value-77"}}, {"value-77"}),
        ({"headers": {"AUTHORIZATION": "Bearer token-77"}}, {"Bearer token-77", "token-77"}),
        ({"headers": {"x-api-key": "value-77", "x": "other-77"}}, {"value-77"}),
        ({"headers": {"x-api-key": None}, "auth": None}, set()),
        ({"auth": {"type": "bearer", "token": "short"}}, set()),
        ({"headers": 1, "auth": 1}, set()),
    ],
)
def test_the_credentials_of_a_call_are_not_shown(
    parameters: dict[str, object], hidden: set[str]
) -> None:
    assert set(credentials(parameters)) == hidden
    shown = str(without_credentials(parameters))
    assert [one for one in hidden if one in shown] == []
    assert "other-77" in shown or "other-77" not in str(parameters)


def test_credentials_are_recognized_in_basic_authentication() -> None:
    auth = {"type": "basic", "username": "me", "password": SECRET}
    redaction = Redaction(dict.fromkeys(credentials({"auth": auth}), "[redacted]"))
    sent = base64.b64encode(f"me:{SECRET}".encode()).decode()
    assert redaction.text(f"Basic {sent}") == "Basic [redacted]"
