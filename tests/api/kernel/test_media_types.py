"""Who gets a page, and who gets JSON."""

import pytest

from api.kernel.responses import prefers


@pytest.mark.parametrize(
    ("accept", "html"),
    [
        ([], False),
        ([b"*/*"], False),
        ([b"application/json"], False),
        ([b"text/html"], True),
        ([b"text/html;q=0"], False),
        ([b"text/html;q=much"], False),
        ([b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"], True),
        ([b"application/json", b"TEXT/HTML ; charset=utf-8; q=0.4"], False),
        ([b"application/json;q=0.2, text/html;q=0.4"], True),
        ([b"text/plain,\xff;;=,"], False),
    ],
)
def test_html_is_for_those_who_ask_for_it(accept: list[bytes], html: bool) -> None:
    assert prefers("text/html", accept) is html
