"""Merging the blocks of pages: each side keeps what it alone changed."""

import pytest

from models.sources.resource_imports.pages import Merged, Written, digest_of, merge_blocks
from models.sources.resource_imports.rules import Outcome


def merged(before: str, here: str, said: str) -> tuple[str, Merged]:
    """The page as letters, each a block; those that the document brings are capitals."""
    found = merge_blocks([Written(one, one) for one in before], here, said)
    taken = (
        here[one.here or 0] if one.incoming is None else said[one.incoming] for one in found.blocks
    )
    return "".join(taken), found


@pytest.mark.parametrize(
    ("before", "here", "said", "page", "kept"),
    [
        pytest.param("abc", "abc", "abc", "abc", 0, id="nothing"),
        pytest.param("abc", "abc", "aXc", "aXc", 0, id="changed at the source"),
        pytest.param("abc", "axc", "abc", "axc", 0, id="changed here"),
        pytest.param("abc", "axc", "aXc", "axc", 1, id="changed on both sides"),
        pytest.param("abc", "abcx", "abX", "abXx", 0, id="added here, changed at the source"),
        pytest.param("abc", "xabc", "Xbc", "xXbc", 0, id="added before what changed"),
        pytest.param("abc", "abc", "ac", "ac", 0, id="removed at the source"),
        pytest.param("abc", "ac", "abc", "ac", 0, id="removed here"),
        pytest.param("abc", "ac", "aXc", "ac", 1, id="removed here, changed at the source"),
        pytest.param("abc", "xabc", "abcY", "xabcY", 0, id="added on both sides"),
        pytest.param("", "x", "Y", "xY", 0, id="from nothing"),
        pytest.param("aaaa", "aaxaa", "aaa", "aaxa", 0, id="blocks that are alike"),
    ],
)
def test_a_change_of_one_side_counts(
    before: str, here: str, said: str, page: str, kept: int
) -> None:
    shown, found = merged(before, here, said)
    assert (shown, found.counts.kept) == (page, kept)
    placed = {one.incoming for one in found.blocks if one.incoming is not None}
    assert set(found.digests) | placed == set(range(len(said))), (
        "what the next import compares with is the whole document"
    )


def test_a_page_that_only_people_changed_is_unchanged() -> None:
    assert merged("abc", "axc", "abc")[1].counts.outcome is Outcome.UNCHANGED
    assert merged("abc", "axc", "aXc")[1].counts.outcome is Outcome.KEPT


def test_very_many_blocks_that_are_alike_are_one_change() -> None:
    shown, found = merged("a" * 4_000, "b" + "a" * 4_000 + "b", "c" + "a" * 4_000 + "d")
    assert found.counts.kept == 0
    assert len(shown) > 4_000


def test_ids_do_not_tell_blocks_apart() -> None:
    block = {"kind": "quote", "content": {}, "children": [{"kind": "divider", "content": {}}]}
    named = {**block, "id": "1", "children": [{"kind": "divider", "content": {}, "id": "2"}]}
    assert digest_of(block) == digest_of(named)
