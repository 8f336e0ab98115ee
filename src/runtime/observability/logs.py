"""Structured logs: JSON or console lines with the request's context and without secrets.

See architecture.md#no-user-data.
"""

import logging
import re
import sys
import traceback
from collections.abc import Mapping
from typing import Any, Literal

import structlog
from sqlalchemy.exc import SQLAlchemyError
from structlog.typing import EventDict, Processor

from runtime.redaction import REDACTED, names_secret

_SECRET_TEXT = re.compile(
    r"svc_sk_[0-9A-Za-z]+|whsec_[0-9A-Za-z+/=]+|decision_[\w-]{80,}|eyJ[\w-]+\.[\w-]+\.[\w-]*|(?i:bearer\s+\S+)"
    r"|(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"
)
_HARMLESS = frozenset({"api_key_id", "idempotency_key"})
_QUOTING = ("hpack", "httpcore2", "httpx2")
"""Libraries whose lines quote URLs and headers."""


def configure_logging(style: Literal["json", "console"] = "json", level: str = "info") -> None:
    """Send our lines and the standard library's through one pipeline to standard error."""
    processors: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        redact,
    ]
    renderer: Processor = (
        structlog.processors.JSONRenderer()
        if style == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[*processors, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    # Of `runtime.observability.process_output`, where it makes lines of JSON of what others write.
    handler = logging.StreamHandler(getattr(sys.stderr, "real", sys.stderr))
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=processors,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    for library in _QUOTING:
        logging.getLogger(library).setLevel(logging.WARNING)


def redact(_logger: object, _method: str, event: EventDict) -> EventDict:
    """A structlog processor that blanks values named like secrets or shaped like ours."""
    return {key: _clean(key, value) for key, value in event.items()}


def without_tokens(text: str) -> str:
    """The text without parts that look like one of our tokens, or like a credential."""
    return _SECRET_TEXT.sub(REDACTED, text)


def _clean(key: str, value: object) -> object:
    if isinstance(value, str | bytes) and key not in _HARMLESS and names_secret(key):
        return REDACTED
    if isinstance(value, str):
        return without_tokens(value)
    if isinstance(value, Mapping):
        return {inner: _clean(str(inner), child) for inner, child in value.items()}
    if isinstance(value, list | tuple):
        return [_clean("", child) for child in value]
    return value


def describe(error: BaseException) -> dict[str, Any]:
    """The facts of an unexpected exception that a log may contain.

    Database errors quote statements, parameters and rows, so of those only the class, SQLSTATE and
    constraint are logged.
    """
    facts: dict[str, Any] = {
        "error_type": type(error).__name__,
        "stack": "".join(traceback.format_tb(error.__traceback__)),
    }
    if isinstance(error, SQLAlchemyError):
        origin = getattr(error, "orig", None)
        facts["sqlstate"] = getattr(origin, "sqlstate", None)
        facts["constraint"] = getattr(getattr(origin, "diag", None), "constraint_name", None)
    else:
        facts["error_message"] = str(error)[:500]
    return facts
