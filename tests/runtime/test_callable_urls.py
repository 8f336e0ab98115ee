"""What is refused before a call is also refused when it is made, and nothing else."""

import pytest

from runtime.callable_urls import url_problem
from runtime.outbound.errors import InvalidUrlError
from runtime.outbound.urls import parse_url


@pytest.mark.parametrize(
    "text",
    [
        "", "example.com", "ftp://a/", "http://", "http://[::1", "http://a]/", "http://a:99999/",
        "http://a:x/", "http://a:22/", "http://a:0/", "http://u:p@a/", "http://a@/", "http://a..b/",
        "http://-a.b/", "http://a%41b/", "http://a.example\\@127.0.0.1/",
        "http://" + "a" * 64 + ".example/", "http://bücher.example:22/",
    ],
)  # fmt: skip
def test_what_can_never_be_called(text: str) -> None:
    assert url_problem(text)
    with pytest.raises(InvalidUrlError):
        parse_url(text)


@pytest.mark.parametrize(
    "text",
    [
        "https://a.example", "http://localhost:8080/", "http://127.0.0.1/", "http://10.0.0.1:81/x",
        "http://[::1]:8080/", "http://[fe80::1%25lo]/", "http://under_score.example./",
        "http://a:/x", "http://a?b=[c]", "http://a/b:99999/@c#http://d:0", "http://bücher.example/",
    ],
)  # fmt: skip
def test_which_urls_may_be_called(text: str) -> None:
    assert url_problem(text) is None
    parse_url(text)
