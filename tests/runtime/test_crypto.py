"""Keys, digests, signatures and sealed values."""

import pytest

from runtime.crypto import KeyRing, UnreadableError, fingerprint

OLD, NEW = "o" * 32, "n" * 32


def test_a_sealed_value_opens_only_at_its_place() -> None:
    ring = KeyRing([NEW])
    sealed = ring.seal(b"secret", "table|1|column")
    assert b"secret" not in sealed
    assert sealed != ring.seal(b"secret", "table|1|column")
    assert ring.unseal(sealed, "table|1|column") == b"secret"
    for altered, place in (
        (sealed, "table|2|column"),
        (sealed[:-1] + bytes([sealed[-1] ^ 1]), "table|1|column"),
        (b"", "table|1|column"),
        (sealed[:10], "table|1|column"),
    ):
        with pytest.raises(UnreadableError):
            ring.unseal(altered, place)
    with pytest.raises(UnreadableError):
        KeyRing([OLD]).unseal(sealed, "table|1|column")


def test_an_earlier_secret_can_still_be_read() -> None:
    before, after = KeyRing([OLD]), KeyRing([NEW, OLD])
    assert after.unseal(before.seal(b"x", "p"), "p") == b"x"
    assert before.digest(b"token") in after.digests(b"token")
    assert after.verify(b"message", before.sign(b"message"))
    assert after.digest(b"token") != before.digest(b"token")
    with pytest.raises(UnreadableError):
        before.unseal(after.seal(b"x", "p"), "p")


def test_the_uses_of_one_secret_are_kept_apart() -> None:
    ring = KeyRing([NEW])
    assert ring.digest(b"message") != ring.sign(b"message")
    assert not ring.verify(b"message", ring.digest(b"message"))


def test_fingerprints_know_where_parts_end() -> None:
    assert fingerprint(b"ab", b"c") != fingerprint(b"a", b"bc")
    assert fingerprint(b"a") != fingerprint(b"a", b"")
