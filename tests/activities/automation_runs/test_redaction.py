"""What comes back from outside is kept without the secrets that were sent (promise I8)."""

import base64
import json
import traceback
from typing import Any
from urllib.parse import quote_plus

import pytest

from activities.automation_runs.nodes.failures import failure_of
from activities.automation_runs.nodes.secrecy import Redaction
from models.automation.automation_runs.errors import NodeError
from runtime.errors import ValidationError

SECRET = 'p&s "w\\rd ü/='
MARK = "[secret KEY]"


def redaction(secret: str = SECRET, **parameters: Any) -> Redaction:
    return Redaction({"KEY": secret}, parameters)


@pytest.mark.parametrize(
    "spelled",
    [
        SECRET,
        quote_plus(SECRET),
        "p%26s%20%22w%5Crd%20%C3%BC%2F%3D",
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        base64.b64encode(SECRET.encode()).decode(),
    ],
    ids=["plain", "form", "url", "json", "json-unicode", "base64"],
)
def test_a_secret_is_found_in_every_spelling(spelled: str) -> None:
    assert redaction().text(f"x{spelled}y{spelled}") == f"x{MARK}y{MARK}"


def test_a_secret_is_taken_out_of_keys_lists_and_numbers() -> None:
    value = {"42": [42, 4.2, 1421, True, None, {"a": "x42"}], "b": 7}
    assert redaction("42").value(value) == {
        MARK: [MARK, 4.2, f"1{MARK}1", True, None, {"a": f"x{MARK}"}],
        "b": 7,
    }


def test_of_two_secrets_the_longer_is_taken_out_whole() -> None:
    two = Redaction({"A": "abc", "B": "abcdef"}, {})
    assert two.text("abcdef abc") == "[secret B] [secret A]"


def test_basic_credentials_are_taken_out() -> None:
    encoded = base64.b64encode(f"me:{SECRET}".encode()).decode()
    hidden = redaction(auth={"type": "basic", "username": "me", "password": SECRET})
    assert hidden.text(f"Basic {encoded}") == "Basic [secret credentials]"


def test_a_known_failure_stays_what_it_is() -> None:
    error = NodeError("http_503", f"busy with {SECRET}", retryable=True, retry_after=3)
    failure = failure_of(redaction().failure(error))
    assert (failure.code, failure.message) == ("http_503", f"busy with {MARK}")
    assert (failure.retryable, failure.retry_after) == (True, 3)
    other = failure_of(redaction().failure(ValidationError.at("x", SECRET)))
    assert (other.code, other.message) == ("validation_error", f"x: {MARK}")


def test_an_unknown_failure_is_told_without_its_words() -> None:
    with pytest.raises(ValueError, match="invalid literal") as raised:
        int(SECRET)
    told = redaction().failure(raised.value)
    assert str(told).startswith("ValueError: invalid literal")
    assert SECRET not in str(told)
    assert "test_an_unknown_failure" in "".join(traceback.format_tb(told.__traceback__))
