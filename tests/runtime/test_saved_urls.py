"""Which URLs are refused when they are saved: those that a call would not be let through to."""

from collections.abc import Iterator

import pytest

from runtime.outbound_policy import OutboundPolicy, saving, url_problem


@pytest.fixture(autouse=True)
def _saving() -> Iterator[None]:
    token = saving.set(OutboundPolicy.from_entries(["10.1.2.3:8080", "192.168.7.0/24"]))
    yield
    saving.reset(token)


@pytest.mark.parametrize(
    "text",
    [
        "http://example.com#@127.0.0.1/", "http://127.0.0.1#@example.com/", "http://@127.0.0.1/",
        "http://127.0.0.1:5432/", "http://127.0.0.1:7233/", "http://@example.com/",
        "http://a.example:22/", "http://u@a.example/", "http://a.example/#part", "http://a.example#",
        "http://127.1/", "http://2130706433/", "http://0x7f.1/", "http://0177.0.0.1/", "http://0/",
        "http://127.0.0.1./", "http://localhost/", "http://x.LOCALHOST./", "http://[::1]/",
        "http://[::ffff:127.0.0.1]/", "http://[fe80::1%25eth0]/", "http://[64:ff9b::7f00:1]/",
        "http://169.254.169.254/latest", "http://168.63.129.16/", "http://10.1.2.3/",
        "http://10.1.2.3:8081/", "http://192.168.8.1/", "http://①②⑦.⓪.⓪.①/",
        "http://\uff11\uff12\uff17.0.0.1/", "http://ⓛocalhost/", "https://0.0.0.0/",
        "http://127。0。0。2/", "http://127\uff0e0\uff0e0\uff0e2/", "http://127｡0｡0｡2./", "http://[::127.0.0.2]/",
        "http://017700000002/", "http://0x7f000002/", "http://127.0.2/", "http://0177.0.0.2/",
        "http://[::ffff:7f00:2]/", "http://[::ffff:0:127.0.0.2]/", "http://[2002:7f00:2::]/",
        "http://[fd00::1]/", "http://[ff02::1]/", "http://[::]/", "http://100.64.0.1/",
        "http://a.example:6379/", "http://a.example:7233/", "http://a.example:5432/",
        "http://localhost./", "http://127.0.0.2..", "http://0x7f.0.0.0x2./", "http://224.0.0.1/",
    ],
)  # fmt: skip
def test_urls_that_are_not_saved(text: str) -> None:
    assert url_problem(text)


@pytest.mark.parametrize(
    "text",
    [
        "https://a.example", "http://93.184.215.14/", "http://a.example:8080/x?y=@z", "http://a/",
        "http://10.1.2.3:8080/", "http://192.168.7.9:81/", "http://127.0.0.1.example/",
        "http://bücher.example/", "http://[2606:4700::1111]/", "http://localhost.example/",
    ],
)  # fmt: skip
def test_urls_that_are_saved(text: str) -> None:
    assert url_problem(text) is None
