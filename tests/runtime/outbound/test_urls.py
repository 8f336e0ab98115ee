import pytest

from runtime.outbound.errors import InvalidUrlError
from runtime.outbound.messages import parse_url


@pytest.mark.parametrize(
    "text",
    [
        "", "example.com", "//example.com/", "file:///etc/passwd", "gopher://a.example/", "ftp://a/",
        "javascript:alert(1)", "http://", "http:/a", "http://user:secret@a.example/", "http://u@a/",
        "http://a.example\\@127.0.0.1/", "http://a b/", "http://a..b/", "http://.a/", "http://a:0/",
        "http://a:22/", "http://a:99999/", "http://a:x/", "http://ex\u0000a.com/", "http://a\r\n.b/",
        "http://①②⑦.⓪.⓪.①/", "http://\uff11\uff12\uff17.0.0.1/", "http://[::1", "http://[fe80::1%25lo]x/",
        "http://" + "a" * 300 + "/", "http://a.example/" + "x" * 9000,
    ],
)  # fmt: skip
def test_a_url_that_is_not_called_is_refused_before_any_lookup(text: str) -> None:
    with pytest.raises(InvalidUrlError) as caught:
        parse_url(text)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HTTP://A.Example:80/x?a=1#part", "http://a.example/x?a=1"),
        (" https://a.example ", "https://a.example"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://[2606:4700::1]:8080/", "http://[2606:4700::1]:8080/"),
        ("http://under_score.example/", "http://under_score.example/"),
    ],
)
def test_a_url_is_written_one_way(text: str, expected: str) -> None:
    assert str(parse_url(text)) == expected


def test_query_parameters_are_added_to_those_of_the_url() -> None:
    url = parse_url("https://a.example/?a=1", {"b": "x y&z", "c": ["1", "2"]})
    assert str(url) == "https://a.example/?a=1&b=x+y%26z&c=1&c=2"
