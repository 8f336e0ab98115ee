import pytest

from runtime.outbound.errors import InvalidUrlError
from runtime.outbound.messages import Hop, OutboundRequest, first_hop, next_hop

SECRETS = {"Authorization": "Bearer s", "Cookie": "s", "X-Api-Key": "s", "Content-Type": "a/b"}


def hop(method: str = "POST", url: str = "https://a.example/x") -> Hop:
    body = None if method in {"GET", "HEAD"} else b"body"
    return first_hop(OutboundRequest(method=method, url=url, headers=SECRETS, body=body))


@pytest.mark.parametrize(
    ("status", "method", "expected"),
    [
        (301, "POST", "GET"), (302, "POST", "GET"), (303, "POST", "GET"), (307, "POST", "POST"),
        (308, "POST", "POST"), (301, "PUT", "PUT"), (303, "PUT", "GET"), (303, "HEAD", "HEAD"),
        (302, "GET", "GET"), (302, "DELETE", "DELETE"),
    ],
)  # fmt: skip
def test_the_method_follows_the_status(status: int, method: str, expected: str) -> None:
    following = next_hop(hop(method), status, "/y")
    assert following is not None
    assert following.method == expected
    if (method, expected) == ("POST", "GET"):
        assert following.content is None
        assert "content-type" not in following.headers
    elif method == "POST":
        assert following.content == b"body"


@pytest.mark.parametrize(
    ("status", "location"), [(200, "/y"), (304, "/y"), (300, "/y"), (302, None)]
)
def test_an_answer_that_is_no_redirect_is_final(status: int, location: str | None) -> None:
    assert next_hop(hop(), status, location) is None


@pytest.mark.parametrize(
    ("start", "target", "keeps"),
    [
        ("https://a.example/x", "/y", True),
        ("https://a.example/x", "https://a.example:443/y", True),
        ("http://a.example/x", "https://a.example/y", True),
        ("https://a.example/x", "http://a.example/y", False),
        ("https://a.example/x", "https://b.example/y", False),
        ("https://a.example/x", "https://sub.a.example/y", False),
        ("https://a.example/x", "https://a.example:8443/y", False),
        ("http://a.example:8080/x", "https://a.example/y", False),
    ],
)
def test_secrets_stay_with_the_origin(start: str, target: str, keeps: bool) -> None:
    following = next_hop(hop("GET", start), 302, target)
    assert following is not None
    carried = {"authorization", "cookie", "x-api-key"} & following.headers.keys()
    assert len(carried) == (3 if keeps else 0)
    assert "accept" in following.headers


@pytest.mark.parametrize("location", ["file:///etc/passwd", "http://a:b@x.example/", "ftp://x/"])
def test_a_redirect_that_cannot_be_followed_says_who_sends_there(location: str) -> None:
    with pytest.raises(InvalidUrlError) as raised:
        next_hop(hop("GET", "https://api.example/x"), 302, location)
    assert raised.value.message.startswith("api.example redirects to a URL that can't be called. ")
