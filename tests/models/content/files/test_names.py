"""The names that files are stored under, and the addresses that give them."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from models.content.files.rules import (
    AssetClaim,
    answered_claim,
    download_url,
    file_name,
    media_type,
    read_asset_token,
)
from runtime.crypto import KeyRing


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("a" * 255, "a" * 255),
        ("a" * 256, "a" * 255),
        ("a" * 255 + ".txt", "a" * 251 + ".txt"),
        ("dir/..\\plan.pdf", "plan.pdf"),
        ("..", "file"),
    ],
    ids=["255", "256", "suffix", "directories", "dots"],
)
def test_a_name_is_one_segment_of_at_most_255_characters(given: str, stored: str) -> None:
    assert file_name(given) == stored


@pytest.mark.parametrize(
    ("declared", "kept"),
    [
        ("Text/HTML; charset=UTF-8", "text/html; charset=UTF-8"),
        (" image/png ", "image/png"),
        ("no type", "application/octet-stream"),
        (None, "application/octet-stream"),
        ("a/" + "x" * 400, "application/octet-stream"),
    ],
)
def test_a_declared_type_is_kept_if_it_is_one(declared: str | None, kept: str) -> None:
    assert media_type(declared) == kept


@pytest.mark.parametrize("link", [None, UUID(int=9)])
def test_an_address_gives_one_file_of_one_workspace(link: UUID | None) -> None:
    keys, space, file = KeyRing(["k" * 32]), UUID(int=1), UUID(int=2)
    claim = AssetClaim(datetime(2026, 1, 1, tzinfo=UTC), link)
    path, _, token = download_url(keys, space, file, claim).rpartition("/")
    assert path == f"/v1/assets/{file}"
    assert read_asset_token(keys, space, file, token) == claim
    changed = token[:-2] + ("AA" if token[-2:] != "AA" else "BA")
    for other in (
        read_asset_token(keys, space, UUID(int=3), token),
        read_asset_token(keys, UUID(int=3), file, token),
        read_asset_token(KeyRing(["o" * 32]), space, file, token),
        read_asset_token(keys, space, file, changed),
        read_asset_token(keys, space, file, ""),
    ):
        assert other is None


def test_the_addresses_of_an_hour_are_the_same_and_last_a_day_more() -> None:
    hour = datetime(2026, 1, 1, 10, tzinfo=UTC)
    ends = {answered_claim(hour + timedelta(minutes=minutes)).expires_at for minutes in (0, 59)}
    assert ends == {datetime(2026, 1, 2, 11, tzinfo=UTC)}
