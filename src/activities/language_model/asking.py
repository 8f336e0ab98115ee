"""Asking a model for a JSON object."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import Any

import structlog

from models.core.base import JsonObject
from models.workspace.model_settings.queries import Endpoint
from runtime.outbound.client import OutboundClient

_log = structlog.get_logger(__name__)

MOST_OBJECTS = 20
"""Beginnings of objects that are looked for in an answer."""


class LanguageModel:
    """Asks the model of a workspace."""

    def __init__(self, outbound: OutboundClient) -> None:
        self._outbound = outbound

    async def ask(self, endpoint: Endpoint, instructions: str, prompt: str) -> JsonObject | None:
        """The object that a model answers; None when it gives none in its time."""
        try:
            async with asyncio.timeout(endpoint.timeout_seconds):
                # To import the client takes seconds, in which others go on.
                converse = await asyncio.to_thread(_conversation)
                return found_object(await converse(self._outbound, endpoint, instructions, prompt))
        except Exception as error:  # noqa: BLE001  # a foreign answer may break its client anywhere
            _log.warning("model_gave_no_answer", error_type=type(error).__name__)
            return None


_Converse = Callable[[OutboundClient, Endpoint, str, str], Coroutine[Any, Any, str]]


def _conversation() -> _Converse:
    found: _Converse = import_module("activities.language_model.conversation").converse
    return found


def found_object(text: str) -> JsonObject | None:
    """The first whole JSON object in a text, whatever stands around it."""
    decoder = json.JSONDecoder()
    place = text.find("{")
    for _ in range(MOST_OBJECTS):
        if place < 0:
            return None
        try:
            found, _ = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            place = text.find("{", place + 1)
            continue
        return found if isinstance(found, dict) else None
    return None
