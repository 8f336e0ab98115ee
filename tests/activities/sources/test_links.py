"""The header Link, as RFC 8288 lets servers write it."""

import pytest

from activities.sources.requests import linked

BASE = "https://api.example.com/v1/orders?page=1"


@pytest.mark.parametrize(
    ("header", "found"),
    [
        pytest.param('<?page=2>; rel="next"', "/v1/orders?page=2", id="relative-query"),
        pytest.param("</v2/x>; rel=next", "/v2/x", id="relative-path-and-token"),
        pytest.param("<more>;rel=next", "/v1/more", id="relative-name"),
        pytest.param('<?a=1,2;3>; rel="next"', "/v1/orders?a=1,2;3", id="comma-in-the-url"),
        pytest.param('<?p=9>; rel="last", <?p=2>; rel="next"', "/v1/orders?p=2", id="second"),
        pytest.param('<?p=2>; rel="prev NEXT"', "/v1/orders?p=2", id="list-and-case"),
        pytest.param('<?p=2> ; Rel = "next"', "/v1/orders?p=2", id="blanks"),
        pytest.param('<?p=2>; title="a, b; c"; rel=next', "/v1/orders?p=2", id="quoted"),
        pytest.param(r'<?p=2>; title="say \"x\""; rel=next', "/v1/orders?p=2", id="escaped"),
        pytest.param('<?p=2>; crossorigin; rel="next";', "/v1/orders?p=2", id="no-value"),
        pytest.param(", ,<?p=2>; rel=next", "/v1/orders?p=2", id="empty-elements"),
        pytest.param('<?p=2>; title="x; rel=next"; rel=prev', None, id="only-a-title"),
        pytest.param("<?p=2>; rel=prev; rel=next", None, id="the-first-rel-counts"),
        pytest.param("<?p=2>; rel=nextish", None, id="another-relation"),
        pytest.param('<?p=2>; rel=next; anchor="/else"', None, id="of-another-resource"),
        pytest.param("?p=2; rel=next", None, id="no-brackets"),
        pytest.param("", None, id="none"),
    ],
)
def test_the_next_link_is_found(header: str, found: str | None) -> None:
    whole = None if found is None else f"https://api.example.com{found}"
    assert linked(header, "next", BASE) == whole


def test_a_header_that_never_ends_is_read_at_once() -> None:
    for header in ("<x>" + "; a" * 20_000 + "!", '<x>; a="' + "\\" * 60_000, "<" * 60_000):
        assert linked(header, "next", BASE) is None
