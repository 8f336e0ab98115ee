"""Secrets in effects: they replace their marks in requests, and marks replace them in responses."""

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import quote, quote_plus

import pydantic

from activities.automation_runs.nodes.failures import DATABASE_AWAY, failure_of
from activities.automation_runs.nodes.invocation import Effect, NodeResult, Outgoing
from models.automation.automation_runs.errors import NodeError
from models.automation.automations.rules.language.bindings import BindingError
from models.automation.automations.rules.language.secret_marks import (
    SecretMark,
    marked_names,
    no_secret,
    revealed,
)
from models.automation.secrets.queries import secret_values
from models.core.base import JsonObject
from runtime.crypto import KeyRing
from runtime.database import Database
from runtime.errors import PlatformError


class Secrecy:
    """Gives effects the secrets their parameters are marked with, and keeps them from the run."""

    def __init__(self, database: Database, keys: KeyRing) -> None:
        self._database = database
        self._keys = keys

    def around(self, effects: Mapping[str, Effect]) -> Mapping[str, Effect]:
        """The same effects; neither their results nor their failures hold a secret."""
        return {kind: partial(self._send, effect) for kind, effect in effects.items()}

    async def _send(self, effect: Effect, outgoing: Outgoing) -> NodeResult:
        names = frozenset(marked_names(outgoing.parameters))
        if not names:
            return await effect(outgoing)
        async with self._database.statement() as work:
            secrets = await secret_values(work, self._keys, outgoing.workspace_id, names)
        for name in sorted(names - secrets.keys()):
            raise BindingError(no_secret(name))
        parameters = revealed(outgoing.parameters, secrets)
        redaction = Redaction(secrets, parameters)
        try:
            result = await effect(replace(outgoing, parameters=parameters))
        except DATABASE_AWAY:
            raise
        except Exception as error:  # noqa: BLE001  # its text may quote what was sent
            raise redaction.failure(error) from None
        return replace(result, output=redaction.value(result.output))


class Redaction:
    """Puts marks where secrets stand, as they are or as a request spells them."""

    def __init__(self, secrets: Mapping[str, str], parameters: JsonObject) -> None:
        marks: dict[str, str] = {}
        for name, secret in secrets.items():
            escaped = json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]
            encoded = base64.b64encode(secret.encode()).decode()
            for text in (secret, quote(secret, safe=""), quote_plus(secret), encoded, *escaped):
                marks.setdefault(text, SecretMark.of(name))
        marks.update(_credentials(parameters))
        # The longest first: one secret may begin with another.
        self._marks = sorted(marks.items(), key=lambda one: len(one[0]), reverse=True)

    def text(self, text: str) -> str:
        """The text without secrets."""
        for secret, mark in self._marks:
            text = text.replace(secret, mark)
        return text

    def value(self, value: Any) -> Any:
        """The JSON value without secrets, in keys and numbers too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            written = json.dumps(value)
            shown = self.text(written)
            return value if shown == written else shown
        return value

    def failure(self, error: Exception) -> Exception:
        """The same failure, told without secrets."""
        if not isinstance(error, PlatformError | pydantic.ValidationError):
            # Nobody expected it, so it will be logged.
            told = RuntimeError(f"{type(error).__name__}: {self.text(str(error))}")
            return told.with_traceback(error.__traceback__)
        failure = failure_of(error)
        return NodeError(
            failure.code,
            self.text(failure.message),
            retryable=failure.retryable,
            retry_after=failure.retry_after,
        )


def _credentials(parameters: JsonObject) -> Mapping[str, str]:
    """Basic credentials, in which a password is not to be recognized."""
    auth = parameters.get("auth")
    if not isinstance(auth, dict) or auth.get("type") != "basic":
        return {}
    pair = f"{auth.get('username')}:{auth.get('password')}"
    return {base64.b64encode(pair.encode()).decode(): "[secret credentials]"}
