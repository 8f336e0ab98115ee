"""Logs carry no secrets (architecture.md#no-user-data)."""

import json
import logging

import pytest
import structlog
from sqlalchemy.exc import IntegrityError

from runtime.observability.logs import configure_logging, describe, redact

SECRETS = [
    "svc_sk_0123456789abcdefghij",
    "whsec_c2VjcmV0c2VjcmV0",
    "decision_" + "a1-_" * 20,
    "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl",
    "Bearer some-opaque-token",
    "user:hunter2",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_secrets_are_blanked_wherever_they_stand(secret: str) -> None:
    event = {
        "event": f"postgresql://{secret}@host/db" if "hunter" in secret else f"call with {secret}!",
        "authorization": secret,
        "nested": {"token": secret, "list": [f"x {secret}" if "hunter" not in secret else "x"]},
        "api_key_id": "kept",
    }
    cleaned = json.dumps(redact(None, "info", event))
    assert secret not in cleaned
    assert "kept" in cleaned


def test_lines_are_json_with_their_context(capfd: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        configure_logging("json", "info")
        with structlog.contextvars.bound_contextvars(request_id="r1", workspace_id="w1"):
            structlog.get_logger("a.b").info("told", token="x", count=1)
        logging.getLogger("c.d").warning("also %s", "svc_sk_secret")
    finally:
        root.handlers[:], root.level = handlers, level
        structlog.reset_defaults()
    first, second = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert (first["event"], first["request_id"], first["count"]) == ("told", "r1", 1)
    assert (first["token"], first["level"], first["logger"]) == ("[redacted]", "info", "a.b")
    assert second["event"] == "also [redacted]"


def test_database_errors_do_not_quote_rows() -> None:
    error = IntegrityError("INSERT …", {"digest": "secret"}, Exception("Key (a)=(secret) exists"))
    assert "secret" not in json.dumps(describe(error))
    assert describe(ValueError("why"))["error_message"] == "why"
