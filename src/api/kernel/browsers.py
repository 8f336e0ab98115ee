"""Requests of browsers: the session cookie, and proof that a form is one of ours (ADR 0082).

A page is served to who accepts `text/html`, so that API clients see nothing of pages. What changes
something is sent by a form of the same origin with a token that is bound to the session.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlsplit

from starlette.types import Scope

from api.kernel.body import Body
from api.kernel.responses import prefers
from models.people.credentials import is_well_formed
from runtime import base64url
from runtime.configuration.settings import Settings
from runtime.crypto import KeyRing, fingerprint
from runtime.errors import DeniedError, PlatformError, UnsupportedMediaTypeError, ValidationError

TOKEN_FIELD = "csrfToken"  # noqa: S105  # the name of a field
KEY_FIELD = "idempotencyKey"
_MOST_FIELDS = 1000
_MOST_COOKIES = 8192
_ACTIVE_DESTINATIONS = frozenset(
    {"audioworklet", "json", "manifest", "paintworklet", "script", "serviceworker", "sharedworker"}
    | {"style", "worker", "xslt"}
)
_SAFE_METHODS = frozenset({"GET", "HEAD"})
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
PAGE_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Vary": "Accept, HX-Request-Type",
}
"""The headers of a page, also of one that is answered again."""


class ForeignFormError(DeniedError):
    """The request was not sent by a page of ours in the session it is for."""

    advice = "Reload the page and try again."

    def __init__(self) -> None:
        super().__init__(
            "Nothing was changed: the page is outdated or from another session. Reload it and try"
            " again."
        )


class NoSubresourceError(DeniedError):
    """A page of ours asks for what users wrote as a script, a style or a worker of its own.

    The policy of pages names the whole origin, which such a file shares (Fetch Metadata).
    """

    def __init__(self) -> None:
        super().__init__("This resource can't be used as a script or style.")


def refuse_subresource(headers: Mapping[str, str]) -> None:
    """Raises NoSubresourceError."""
    if headers.get("sec-fetch-site") == "same-origin" and (
        headers.get("sec-fetch-dest") in _ACTIVE_DESTINATIONS
    ):
        raise NoSubresourceError


@dataclass(frozen=True, slots=True)
class CookieToken:
    """The token of a session cookie."""

    token: str
    unattended: bool = False
    """The page asks by itself, perhaps while no one is there: that is no use of the session."""

    @property
    def digest(self) -> bytes:
        return fingerprint(self.token.encode())

    def caller_name(self) -> bytes:
        """A name for the caller that is no secret."""
        return self.digest


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a form as the JSON body they stand for, and what the page itself added."""

    body: Body
    token: str
    idempotency_keys: list[bytes]


def is_secure(settings: Settings) -> bool:
    """True when people reach the platform by HTTPS."""
    return (settings.public_url or "").startswith("https://")


def cookie_name(settings: Settings) -> str:
    """The name of the session cookie.

    `__Host-` binds it to this host and to HTTPS. Without HTTPS the port tells platforms of one
    machine apart, which the browser's cookies do not.
    """
    if is_secure(settings):
        return "__Host-session"
    return f"session-{urlsplit(settings.public_url or '').port or 80}"


def read_cookie(headers: Iterable[tuple[bytes, bytes]], name: str) -> str | None:
    """The value of the only cookie of this name; several may be planted, so none of them counts."""
    lines = [value for header, value in headers if header == b"cookie"]
    text = b"; ".join(lines).decode("latin-1")
    if not text or len(text) > _MOST_COOKIES or text.count(f"{name}=") != 1:
        return None
    try:
        cookie = SimpleCookie(text).get(name)
    except CookieError:
        return None
    return None if cookie is None else cookie.value


def read_session(scope: Scope, settings: Settings) -> CookieToken | None:
    """The session cookie of a request, if it may be one."""
    value = read_cookie(scope["headers"], cookie_name(settings))
    if value is None or not is_well_formed(value):
        return None
    refreshes = not takes_html(scope) or (b"hx-request-type", b"partial") in scope["headers"]
    return CookieToken(value, unattended=is_safe(scope) and refreshes)


def takes_html(scope: Scope) -> bool:
    """True for a client that would rather have HTML than JSON, as browsers do."""
    return prefers("text/html", [value for name, value in scope["headers"] if name == b"accept"])


def is_same_origin(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """True when the browser says that a page of this origin sent the request."""
    return [value for name, value in headers if name == b"sec-fetch-site"] == [b"same-origin"]


def header_token(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The token that a script sends for its page; empty without exactly one."""
    given = [value for name, value in headers if name == b"x-csrf-token"]
    return given[0].decode("latin-1") if len(given) == 1 else ""


def is_safe(scope: Scope) -> bool:
    """True for a method that changes nothing (RFC 9110, 9.2.1)."""
    return scope["method"] in _SAFE_METHODS


def check_origin(scope: Scope) -> None:
    """Raises ForeignFormError for a change that no page of this origin asks for."""
    if not is_safe(scope) and not is_same_origin(scope["headers"]):
        raise ForeignFormError


def session_token(keys: KeyRing, cookie: CookieToken) -> str:
    """The token that the forms of one session carry."""
    return base64url.encode(keys.sign(b"form of " + cookie.digest))


def check_token(keys: KeyRing, cookie: CookieToken, token: str) -> None:
    """Raises ForeignFormError for a token that is not this session's."""
    signature = base64url.decode(token) or b""
    if not keys.verify(b"form of " + cookie.digest, signature):
        raise ForeignFormError


def read_form(headers: Iterable[tuple[bytes, bytes]], body: Body) -> Form:
    """The form in a body; what is wrong with it is told later, as with every body."""
    listed = list(headers)
    keys = [value for name, value in listed if name == b"idempotency-key"]
    token = header_token(listed)
    if body.refusal is not None or not body.raw:
        return Form(body, token, keys)
    kind = b"".join(value for name, value in listed if name == b"content-type")
    if kind.partition(b";")[0].strip().lower() != b"application/x-www-form-urlencoded":
        refusal = UnsupportedMediaTypeError("Send the body as a form.")
        return Form(Body(refusal=refusal), token, keys)
    fields, wrong = _fields(body.raw)
    if wrong is not None:
        return Form(Body(refusal=wrong), token, keys)
    return form_of(listed, fields)


def form_of(headers: Iterable[tuple[bytes, bytes]], fields: Mapping[str, str]) -> Form:
    """The form with the fields that were filled in; the page's own are taken out."""
    # Browsers send the lines of a text with both characters.
    texts = {name: text.replace("\r\n", "\n") for name, text in fields.items() if text}
    listed = list(headers)
    token = texts.pop(TOKEN_FIELD, header_token(listed))
    key = texts.pop(KEY_FIELD, "")
    keys = [value for name, value in listed if name == b"idempotency-key"]
    return Form(Body(json.dumps(texts).encode()), token, keys or ([key.encode()] if key else []))


def _fields(raw: bytes) -> tuple[dict[str, str], PlatformError | None]:
    """The fields that were filled in: one that was left empty is like one that is not there."""
    try:
        pairs = parse_qsl(raw.decode("ascii"), errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError:
        return {}, ValidationError("The form is not valid UTF-8.")
    fields: dict[str, str] = {}
    for name, value in pairs:
        if name in fields:
            return {}, ValidationError.at(name[:100], "This field can only be sent once.")
        fields[name] = value
    return fields, None
