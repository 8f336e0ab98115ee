"""URLs in content: only schemes that run no code where the content is shown."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

LONGEST = 2_048
_WEB = frozenset({"http", "https"})


def _web_url(text: str) -> str:
    if not _is_web(text):
        raise ValueError("must be an http or https URL")
    return text


def _link(text: str) -> str:
    if not (_is_web(text) or _is_mail(text)):
        raise ValueError("must be an http, https or mailto URL")
    return text


def _is_web(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in _WEB and bool(parts.hostname) and _is_plain(text)
    except ValueError:
        return False


def _is_mail(text: str) -> bool:
    scheme, _, address = text.partition(":")
    return scheme.lower() == "mailto" and "@" in address and _is_plain(text)


def _is_plain(text: str) -> bool:
    """Browsers drop control characters and read backslashes as slashes: neither may be there."""
    return text.isprintable() and not any(sign.isspace() or sign == "\\" for sign in text)


WebUrl = Annotated[str, Field(max_length=LONGEST), AfterValidator(_web_url)]
Link = Annotated[str, Field(max_length=LONGEST), AfterValidator(_link)]
