"""The URLs the platform calls, before any name is resolved."""

from collections.abc import Mapping, Sequence

import httpx2

from runtime.addresses import NO_HOST, is_host
from runtime.callable_urls import UNREADABLE, target_problem, url_problem
from runtime.outbound.errors import InvalidUrlError

MAX_LENGTH = 8192


def parse_url(text: str, query: Mapping[str, str | Sequence[str]] | None = None) -> httpx2.URL:
    """The URL to call, with `query` merged in and without its fragment. Raises InvalidUrlError."""
    if len(text) > MAX_LENGTH:
        raise InvalidUrlError(f"The URL is longer than {MAX_LENGTH} characters.")
    problem = url_problem(text.strip())
    if problem is not None:
        raise InvalidUrlError(problem)
    try:
        url = httpx2.URL(text.strip())
        if query:
            url = url.copy_merge_params({name: _values(value) for name, value in query.items()})
    except (httpx2.InvalidURL, UnicodeError):
        raise InvalidUrlError(UNREADABLE) from None
    check_url(url)
    return url.copy_with(fragment=None)


def check_host(host: str) -> None:
    """Refuse what can be no host. Raises InvalidUrlError."""
    if not is_host(host):
        raise InvalidUrlError(NO_HOST)


def _values(value: str | Sequence[str]) -> str | list[str]:
    return value if isinstance(value, str) else list(value)


def check_url(url: httpx2.URL) -> None:
    """Refuse what must not be called whatever it resolves to. Raises InvalidUrlError."""
    problem = target_problem(
        url.scheme, url.raw_host.decode("ascii"), url.port, has_user=bool(url.userinfo)
    )
    if problem is not None:
        raise InvalidUrlError(problem)


def same_origin(url: httpx2.URL, target: httpx2.URL) -> bool:
    """True when both name the same scheme, host and port."""
    return _origin(url) == _origin(target)


def is_https_upgrade(url: httpx2.URL, target: httpx2.URL) -> bool:
    """True when `target` is the host of `url` on HTTPS, not HTTP, both on default ports."""
    return _origin(url) == ("http", url.host, 80) and _origin(target) == ("https", url.host, 443)


def _origin(url: httpx2.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80)
