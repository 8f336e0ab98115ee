"""The process of `authorization_server`; everyone who comes has agreed already."""

import os
import sys
import time
from typing import Any

import flask
import werkzeug.serving
from authlib.integrations.flask_oauth2 import AuthorizationServer as Server
from authlib.oauth2.rfc6749 import grants
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge

from tests.support.authorization_server import CLIENT_ID, CLIENT_SECRET

# Its URL is not of HTTPS.
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"


class _Client:
    client_id = CLIENT_ID

    def get_client_id(self) -> str:
        return CLIENT_ID

    def get_default_redirect_uri(self) -> None:
        return None

    def get_allowed_scope(self, scope: str) -> str:
        return scope

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri.startswith("https://platform.test/")

    def check_client_secret(self, secret: str) -> bool:
        return secret == CLIENT_SECRET

    def check_endpoint_auth_method(self, method: str, _endpoint: str) -> bool:
        return method == "client_secret_post"

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in {"authorization_code", "refresh_token"}


class _Code:
    def __init__(self, request: Any) -> None:
        payload = request.payload
        self.redirect_uri, self.scope = payload.redirect_uri, payload.scope
        self.code_challenge = payload.data["code_challenge"]
        self.code_challenge_method = payload.data["code_challenge_method"]
        self.auth_time = int(time.time())

    def get_redirect_uri(self) -> str:
        return str(self.redirect_uri)

    def get_scope(self) -> str:
        return str(self.scope)


class _Token:
    def __init__(self, token: dict[str, Any]) -> None:
        self.token, self.revoked, self.used = token, False, False

    def check_client(self, _client: Any) -> bool:
        return True

    def get_scope(self) -> str:
        return str(self.token.get("scope", ""))


codes: dict[str, _Code] = {}
tokens: list[_Token] = []


def known(text: str) -> _Token | None:
    found = (t for t in tokens if text in {t.token["access_token"], t.token["refresh_token"]})
    return next((t for t in found if not t.revoked), None)


class CodeGrant(grants.AuthorizationCodeGrant):  # type: ignore[misc]
    TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_post"]  # noqa: RUF012

    def save_authorization_code(self, code: str, request: Any) -> None:
        codes[code] = _Code(request)

    def query_authorization_code(self, code: str, _client: Any) -> _Code | None:
        return codes.get(code)

    def delete_authorization_code(self, code: _Code) -> None:
        for key in [key for key, one in codes.items() if one is code]:
            del codes[key]

    def authenticate_user(self, _code: _Code) -> str:
        return "ann"


class RefreshGrant(grants.RefreshTokenGrant):  # type: ignore[misc]
    TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_post"]  # noqa: RUF012
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, text: str) -> _Token | None:
        found = known(text)
        return None if found is None or found.token["refresh_token"] != text else found

    def authenticate_user(self, _token: _Token) -> str:
        return "ann"

    def revoke_old_credential(self, token: _Token) -> None:
        token.revoked, token.used = True, True


class Revocation(RevocationEndpoint):  # type: ignore[misc]
    CLIENT_AUTH_METHODS = ["client_secret_post"]  # noqa: RUF012

    def query_token(self, text: str, _hint: str | None) -> _Token | None:
        return known(text)

    def revoke_token(self, token: _Token, _request: Any) -> None:
        token.revoked = True


app = flask.Flask("authorization-server")
app.config["OAUTH2_REFRESH_TOKEN_GENERATOR"] = True
lifetimes = dict.fromkeys(("authorization_code", "refresh_token"), int(sys.argv[1]))
app.config["OAUTH2_TOKEN_EXPIRES_IN"] = lifetimes
server = Server(
    app,
    query_client=lambda given: _Client() if given == CLIENT_ID else None,
    save_token=lambda token, _request: tokens.append(_Token(token)),
)
server.register_grant(CodeGrant, [CodeChallenge(required=True)])
server.register_grant(RefreshGrant)
server.register_endpoint(Revocation)


@app.get("/authorize")
def authorize() -> Any:
    grant = server.get_consent_grant(end_user="ann")
    return server.create_authorization_response(grant_user="ann", grant=grant)


@app.post("/token")
def token() -> Any:
    return server.create_token_response()


@app.post("/revoke")
def revoke() -> Any:
    return server.create_endpoint_response("revocation")


@app.get("/seen")
def seen() -> Any:
    return {
        "issued": len(tokens),
        "valid": [one.token["access_token"] for one in tokens if not one.revoked],
        "revoked": len([one for one in tokens if one.revoked and not one.used]),
    }


if __name__ == "__main__":
    serving = werkzeug.serving.make_server("127.0.0.1", 0, app, threaded=True)
    sys.stdout.write(f"http://127.0.0.1:{serving.server_port}\n")
    sys.stdout.flush()
    serving.serve_forever()
