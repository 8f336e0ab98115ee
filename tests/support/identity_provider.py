"""An OpenID Connect provider that takes nothing for granted: PKCE, one use of codes, its client."""

import base64
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey

CLIENT_ID, CLIENT_SECRET = "console", "client-secret-of-the-console"

Claims = dict[str, Any]


@dataclass
class Provider:
    """The provider, and what a test has it say."""

    issuer: str = ""
    key: ECKey = field(default_factory=lambda: ECKey.generate_key("P-256", auto_kid=True))
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    claims: Claims = field(default_factory=dict)
    """Claims of ID tokens in place of the true ones."""
    down: bool = False

    def consent(self, authorization_url: str, **changes: str) -> str:
        """The address to which it sends a person back who agrees; `changes` forge its answer."""
        asked = {name: one[0] for name, one in parse_qs(urlsplit(authorization_url).query).items()}
        assert asked["response_type"] == "code"
        assert asked["client_id"] == CLIENT_ID
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        code = secrets.token_urlsafe()
        self.codes[code] = asked
        answer = {"code": code, "state": asked["state"], "iss": self.issuer, **changes}
        return f"{asked['redirect_uri']}?{urlencode(answer)}"

    def exchange(self, form: dict[str, str], authorization: str | None) -> tuple[int, Claims]:
        """The answer of the token endpoint."""
        basic = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        if authorization != f"Basic {basic}":
            return 401, {"error": "invalid_client"}
        asked = self.codes.pop(form.get("code", ""), None)
        verifier = form.get("code_verifier", "").encode()
        challenge = base64.urlsafe_b64encode(sha256(verifier).digest()).rstrip(b"=").decode()
        if (
            asked is None
            or form.get("grant_type") != "authorization_code"
            or form.get("redirect_uri") != asked["redirect_uri"]
            or challenge != asked["code_challenge"]
        ):
            return 400, {"error": "invalid_grant"}
        token = {"access_token": "x", "token_type": "Bearer", "id_token": self.token(asked)}
        return 200, token

    def token(self, asked: dict[str, str]) -> str:
        now = int(time.time())
        claims = {
            "iss": self.issuer, "aud": CLIENT_ID, "sub": "ann", "iat": now, "exp": now + 300,
            "nonce": asked["nonce"], "email": "ann@example.test", "name": "Ann", **self.claims,
        }  # fmt: skip
        header = {"alg": "ES256", "kid": self.key.kid}
        return jwt.encode(header, claims, self.key, algorithms=["ES256"])

    def published(self, path: str) -> Claims | None:
        """The public documents."""
        if path == "/.well-known/openid-configuration":
            return {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/jwks",
            }
        public = {**self.key.as_dict(private=False), "use": "sig", "alg": "ES256"}
        return {"keys": [public]} if path == "/jwks" else None


@contextmanager
def identity_provider() -> Iterator[Provider]:
    """A provider on a free port of this machine, for the length of the block."""
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = provider.published(self.path)
            self._answer(404 if found is None else 200, found or {})

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            fields = parse_qs(self.rfile.read(length).decode())
            form = {name: one[0] for name, one in fields.items()}
            self._answer(*provider.exchange(form, self.headers["Authorization"]))

        def _answer(self, status: int, body: Claims) -> None:
            content = json.dumps(body).encode()
            self.send_response(503 if provider.down else status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        provider.issuer = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield provider
        server.shutdown()
