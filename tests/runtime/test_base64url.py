"""Bytes have one spelling, and every other text stands for nothing."""

import pytest

from runtime.base64url import decode, encode


@pytest.mark.parametrize("length", range(70))
def test_encoded_bytes_are_decoded(length: int) -> None:
    raw = bytes(range(200, 200 + length)) if length < 56 else bytes(length)
    assert decode(encode(raw)) == raw


def test_every_other_spelling_is_refused() -> None:
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    text = encode(b"\xfb\xff\xbe\xfb")
    others = {text[:-1] + sign for sign in alphabet} - {text}
    assert [one for one in others if decode(one) == decode(text)] == []
    for other in (
        text + "=", text + "==", text.replace("-", "+", 1), text.replace("_", "/", 1),
        f" {text}", f"{text}\n", text + "A", "é", "A", "===",
    ):  # fmt: skip
        assert decode(other) != decode(text)
        assert decode(other) is None or encode(decode(other) or b"") == other
