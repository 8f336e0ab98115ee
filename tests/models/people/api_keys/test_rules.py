"""The shape of a key (interface.md#api-keys)."""

import re
import zlib

from models.people.api_keys import is_well_formed, new_token


def test_tokens_have_the_agreed_shape() -> None:
    tokens = {new_token() for _ in range(200)}
    assert len(tokens) == 200
    assert all(re.fullmatch(r"svc_sk_[0-9A-Za-z]{49}", token) for token in tokens)
    assert all(is_well_formed(token) for token in tokens)


def test_the_checksum_is_crc32_in_base62() -> None:
    alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    token = new_token()
    value = 0
    for digit in token[-6:]:
        value = value * 62 + alphabet.index(digit)
    assert value == zlib.crc32(token[:-6].encode())


def test_every_typo_is_noticed() -> None:
    token = new_token()
    for index in range(7, len(token)):
        other = "b" if token[index] == "a" else "a"
        assert not is_well_formed(token[:index] + other + token[index + 1 :])
    for odd in ("", token[:-1], token + "0", token.upper(), f" {token}", f"{token}\n"):
        assert not is_well_formed(odd)
