"""Who is let in, and the one answer to everyone else (interface.md#authentication)."""

import asyncio
import base64
import hmac
import json
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey
from sqlalchemy import select, update

from api.kernel.sessions import SessionVerifier
from cli.supervisor.development import DevelopmentIssuer, ensure_issuer
from models.core.access.rules import Scope
from models.people.api_keys import api_key, new_token
from models.people.users import app_user, make_platform_admin
from models.people.workspaces import workspace
from runtime.errors import UnauthorizedError, UnavailableError
from tests.support.client import Client
from tests.support.patience import eventually
from tests.support.spaces import Space
from tests.support.watched import WatchedDatabase

UNKNOWN = new_token()


async def _refusal(client: Client, headers: list[tuple[bytes, bytes]]) -> bytes:
    answer = await client.with_token(None).get("/v1/me", headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    return answer.content


@pytest.mark.parametrize(
    "values",
    [
        [],
        [b""],
        [b"Bearer"],
        [b"Bearer "],
        [b"Basic dXNlcjpwYXNz"],
        [b"Bearer x"],
        [b"Bearer svc_sk_short"],
        [b"Bearer " + UNKNOWN.encode()],
        [b"Bearer " + UNKNOWN.encode()[:-1] + b"!"],
        [b"Bearer  " + UNKNOWN.encode()],
        [b"Bearer " + UNKNOWN.encode() + b"\x00"],
        [b"Bearer svc_sk_\xc3\xa9"],
        [b"Bearer \xff\xfe"],
        [b"Bearer " + b"a" * 20_000],
        [b"Bearer a.b.c"],
        [b"Bearer " + UNKNOWN.encode(), b"Bearer " + UNKNOWN.encode()],
    ],
)
async def test_every_refusal_is_the_same(client: Client, values: list[bytes]) -> None:
    bare = await _refusal(client, [])
    assert await _refusal(client, [(b"Authorization", value) for value in values]) == bare


async def test_two_headers_are_none_even_if_both_are_right(client: Client, space: Space) -> None:
    twice = [(b"Authorization", f"Bearer {space.token}".encode())] * 2
    assert await _refusal(client, twice) == await _refusal(client, [])


async def test_a_key_ends_by_expiry_revocation_and_with_its_workspace(
    client: Client, space: Space, database: WatchedDatabase
) -> None:
    bearer = [(b"Authorization", f"Bearer {space.token}".encode())]
    bare = await _refusal(client, [])
    for table, values, undo in (
        (api_key, {"expires_at": "now"}, {"expires_at": None}),
        (api_key, {"revoked_at": "now"}, {"revoked_at": None}),
        (workspace, {"deleted_at": "now"}, {"deleted_at": None}),
    ):
        mine = (table.c.workspace_id if table is api_key else table.c.id) == space.id
        async with database.transaction() as work:
            moments = dict.fromkeys(values, work.now - timedelta(milliseconds=1))
            await work.execute(update(table).where(mine).values(**moments))
        assert await _refusal(client, bearer) == bare
        async with database.transaction() as work:
            await work.execute(update(table).where(mine).values(**undo))
        assert (await client.get("/v1/me")).status_code == 200


async def test_the_scheme_is_read_without_case(client: Client, space: Space) -> None:
    headers = {"Authorization": f"bEARER {space.token}"}
    assert (await client.with_token(None).get("/v1/me", headers=headers)).status_code == 200


async def test_the_stored_form_of_a_key_is_a_digest(
    space: Space, database: WatchedDatabase
) -> None:
    async with database.transaction() as work:
        row = await work.first(select(api_key).where(api_key.c.workspace_id == space.id))
    assert row is not None
    assert space.token.encode() not in repr(row).encode()
    assert row.prefix == space.token[:14]
    assert len(row.digest) == 32


async def test_last_use_is_written_beside_the_request(
    client: Client, space: Space, database: WatchedDatabase
) -> None:
    async def written() -> bool:
        used = select(api_key.c.last_used_at).where(api_key.c.workspace_id == space.id)
        async with database.transaction() as work:
            return await work.scalar(used) is not None

    await client.get("/v1/me")
    await eventually(written, what="lastUsedAt")


def _claims(issuer: DevelopmentIssuer, **changes: object) -> dict[str, object]:
    now = int(time.time())
    claims = {"iss": issuer.issuer, "aud": issuer.audience, "sub": "s", "iat": now, "exp": now + 60}
    return {key: value for key, value in {**claims, **changes}.items() if value is not None}


def _signed(issuer: DevelopmentIssuer, header: dict[str, object], **changes: object) -> str:
    full = {"alg": "ES256", "kid": issuer.key.kid, **header}
    return jwt.encode(full, _claims(issuer, **changes), issuer.key, algorithms=["ES256"])


def _by_hand(
    issuer: DevelopmentIssuer, header: dict[str, object], sign: Callable[[bytes], bytes]
) -> str:
    """A token that no library would make."""
    parts = [{"kid": issuer.key.kid, **header}, _claims(issuer)]
    encoded = b".".join(_base64(json.dumps(part).encode()) for part in parts)
    return (encoded + b"." + _base64(sign(encoded))).decode()


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _unsigned(issuer: DevelopmentIssuer) -> str:
    return _by_hand(issuer, {"alg": "none"}, lambda _: b"")


def _confused(issuer: DevelopmentIssuer) -> str:
    """HS256 with the public key as the shared secret."""
    secret = issuer.key.as_pem(private=False)
    return _by_hand(issuer, {"alg": "HS256"}, lambda data: hmac.digest(secret, data, "sha256"))


def _critical(issuer: DevelopmentIssuer) -> str:
    """Rightly signed, but with a header we must understand and do not (RFC 7515, 4.1.11)."""

    def sign(data: bytes) -> bytes:
        der = issuer.key.get_op_key("sign").sign(data, ECDSA(SHA256()))
        return b"".join(number.to_bytes(32, "big") for number in decode_dss_signature(der))

    return _by_hand(issuer, {"alg": "ES256", "crit": ["x"], "x": 1}, sign)


def _strangers(issuer: DevelopmentIssuer, kid: str | None) -> str:
    key = ECKey.generate_key("P-256")
    header = {"alg": "ES256", "kid": kid or issuer.key.kid}
    return jwt.encode(header, _claims(issuer), key, algorithms=["ES256"])


def _tampered(issuer: DevelopmentIssuer) -> str:
    """The claims of one token under the signature of another."""
    claims, _, _ = _signed(issuer, {}).rpartition(".")
    _, _, signature = _signed(issuer, {}, sub="other").rpartition(".")
    return f"{claims}.{signature}"


FORGERIES = {
    "alg none": _unsigned,
    "HS256 with the public key": _confused,
    "another key": lambda i: _strangers(i, None),
    "an unknown kid": lambda i: _strangers(i, "unknown"),
    "jku": lambda i: _strangers(i, "unknown"),
    "unknown crit": _critical,
    "wrong issuer": lambda i: _signed(i, {}, iss="https://other.test"),
    "wrong audience": lambda i: _signed(i, {}, aud="other"),
    "no audience": lambda i: _signed(i, {}, aud=None),
    "no expiry": lambda i: _signed(i, {}, exp=None),
    "expired": lambda i: _signed(i, {}, exp=int(time.time()) - 61),
    "an expiry that is no number": lambda i: _signed(i, {}, exp="never"),
    "not yet valid": lambda i: _signed(i, {}, nbf=int(time.time()) + 120),
    "no subject": lambda i: _signed(i, {}, sub=None),
    "empty subject": lambda i: _signed(i, {}, sub=""),
    "a subject with NUL": lambda i: _signed(i, {}, sub="a\x00b"),
    "tampered": _tampered,
    "rubbish": lambda _: "e30.e30.e30",
}


@pytest.mark.parametrize("name", FORGERIES)
async def test_forged_sessions_are_refused(
    client: Client, issuer: DevelopmentIssuer, name: str
) -> None:
    token = FORGERIES[name](issuer)
    bare = await _refusal(client, [])
    assert await _refusal(client, [(b"Authorization", f"Bearer {token}".encode())]) == bare


async def test_a_little_clock_skew_is_forgiven(client: Client, issuer: DevelopmentIssuer) -> None:
    token = _signed(issuer, {}, exp=int(time.time()) - 30, nbf=int(time.time()) + 30)
    assert (await client.with_token(token).get("/v1/me")).status_code == 200


async def test_the_profile_follows_the_provider(
    client: Client, issuer: DevelopmentIssuer, database: WatchedDatabase
) -> None:
    for name in ("Ada", "Ada Lovelace"):
        answer = await client.with_token(_signed(issuer, {}, sub="ada", name=name)).get("/v1/me")
        assert answer.json()["data"]["user"]["name"] == name
    unverified = _signed(issuer, {}, sub="ada", email="root@example.test", email_verified=False)
    answer = await client.with_token(unverified).get("/v1/me")
    assert "email" not in answer.json()["data"]["user"]
    async with database.transaction() as work:
        rows = await work.rows(select(app_user.c.id).where(app_user.c.subject == "ada"))
    assert len(rows) == 1


async def test_first_calls_at_the_same_time_make_one_user(
    client: Client, issuer: DevelopmentIssuer
) -> None:
    session = client.with_token(_signed(issuer, {}, sub="crowd"))
    answers = await asyncio.gather(*(session.get("/v1/me") for _ in range(20)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["data"]["user"]["id"] for answer in answers}) == 1


async def test_a_claim_makes_a_platform_administrator(
    client: Client, issuer: DevelopmentIssuer
) -> None:
    for claim, admin in ((None, False), (True, True), ("true", True), (False, False)):
        changes = {} if claim is None else {"platform_admin": claim}
        token = _signed(issuer, {}, sub="root", **changes)
        answer = await client.with_token(token).get("/v1/me")
        assert answer.json()["data"]["platformAdmin"] is admin


async def test_only_a_key_with_every_scope_administers_the_platform(
    client: Client, space: Space
) -> None:
    async with space.database.transaction() as work:
        await make_platform_admin(work, space.user_id)
    narrowed = await space.key([one for one in Scope if one != Scope.BILLING_MANAGE])
    for token, admin in ((space.token, True), (narrowed, False)):
        answer = await client.with_token(token).get("/v1/me")
        assert answer.json()["data"]["platformAdmin"] is admin
        answer = await client.with_token(token).get("/v1/admin/experiments")
        assert answer.status_code == (200 if admin else 403)


async def test_a_new_key_of_the_provider_is_found_and_an_old_one_forgotten(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    old = ensure_issuer(tmp_path / "old")
    (tmp_path / "new").mkdir()
    new = ensure_issuer(tmp_path / "new")
    published = tmp_path / "jwks.json"
    published.write_text(old.jwks_path.read_text())
    verifier = SessionVerifier(old.issuer, old.audience, str(published), "platform_admin")
    assert (await verifier.verify(old.mint("a@b.test"))).subject == "a@b.test"
    published.write_text(new.jwks_path.read_text())
    with pytest.raises(UnauthorizedError):
        await verifier.verify(new.mint("a@b.test"))
    verifier._keys._read_at -= 11
    assert (await verifier.verify(new.mint("a@b.test"))).email == "a@b.test"
    with pytest.raises(UnauthorizedError):
        await verifier.verify(old.mint("a@b.test"))


async def test_keys_that_cannot_be_read_are_the_services_fault(tmp_path: Path) -> None:
    (tmp_path / "i").mkdir()
    issuer = ensure_issuer(tmp_path / "i")
    verifier = SessionVerifier(issuer.issuer, issuer.audience, str(tmp_path / "none"), "admin")
    with pytest.raises(UnavailableError):
        await verifier.verify(issuer.mint("a@b.test"))


async def test_rsa_providers_are_understood(tmp_path: Path) -> None:
    key = RSAKey.generate_key(2048, auto_kid=True)
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [key.as_dict(private=False)]}))
    verifier = SessionVerifier("i", "a", str(tmp_path / "jwks.json"), "admin")
    claims = {"iss": "i", "aud": ["a", "b"], "sub": "s", "exp": int(time.time()) + 60}
    token = jwt.encode({"alg": "RS256", "kid": key.kid}, claims, key, algorithms=["RS256"])
    assert (await verifier.verify(token)).subject == "s"
