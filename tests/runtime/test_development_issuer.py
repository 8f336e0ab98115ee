"""The local issuer keeps its key, to itself."""

import json
from pathlib import Path

from joserfc import jwt
from joserfc.jwk import KeySet

from cli.supervisor.development import ensure_issuer


def test_the_key_stays_and_is_private(tmp_path: Path) -> None:
    first = ensure_issuer(tmp_path)
    again = ensure_issuer(tmp_path)
    published = json.loads(first.jwks_path.read_text())
    claims = jwt.decode(first.mint("A@b.test", "A"), KeySet.import_key_set(published)).claims
    assert again.key.thumbprint() == first.key.thumbprint()
    assert (claims["sub"], claims["email"], claims["name"]) == ("a@b.test", "A@b.test", "A")
    assert claims["exp"] > claims["iat"]
    assert all("d" not in key for key in published["keys"])
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    assert len(list(tmp_path.iterdir())) == 2
