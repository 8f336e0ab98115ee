"""The server that mail is handed over to, as the operator writes it."""

from dataclasses import dataclass, field
from email.utils import parseaddr
from urllib.parse import parse_qs, unquote, urlsplit

from runtime.addresses import is_host

_PORTS = {"smtp": 587, "smtps": 465}
_FORM = "the URL must be smtp[s]://[user:password@]host[:port], its parts percent-encoded"
_STARTTLS = {"required": True, "auto": None, "off": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """The server that mail is handed over to; `starttls` None means when the server offers it."""

    host: str
    port: int
    sender: str
    sender_name: str = ""
    tls: bool = False
    starttls: bool | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, url: str, sender: str) -> "MailServer":
        """From `smtp[s]://[user:password@]host[:port][?starttls=required|auto|off]` and an address.

        STARTTLS is required where a password would be sent. Raises ValueError.
        """
        try:
            parts = urlsplit(url)
            port, host = parts.port, parts.hostname
        except ValueError:  # whose text may be a part of the password
            raise ValueError(_FORM) from None
        query = parse_qs(parts.query, keep_blank_values=True)
        starttls = query.pop("starttls", ["required" if parts.username else "auto"])[-1]
        rest = query or parts.path.strip("/") or parts.fragment
        if parts.scheme not in _PORTS or not host or not is_host(host) or rest:
            raise ValueError(_FORM)
        if starttls not in _STARTTLS:
            raise ValueError("starttls is one of required, auto and off")
        name, address = parseaddr(sender)
        domain = address.rpartition("@")[2]
        if not address.isascii() or not all(address.partition("@")) or not is_host(domain):
            raise ValueError("the sender must be an e-mail address")
        tls = parts.scheme == "smtps"
        return cls(
            host=host,
            port=port or _PORTS[parts.scheme],
            sender=address,
            sender_name=name,
            tls=tls,
            starttls=False if tls else _STARTTLS[starttls],
            username=None if parts.username is None else unquote(parts.username),
            password=None if parts.password is None else unquote(parts.password),
        )
