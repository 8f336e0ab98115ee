import pytest

from runtime.outbound_policy import is_local, is_public, parse_address


@pytest.mark.parametrize(
    "text",
    [
        "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.254", "127.0.0.1", "127.8.8.8",
        "168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192",
        "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1", "198.51.100.1", "203.0.113.1",
        "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
        "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254",
        "::ffff:0:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::1",
        "100::1", "2001::1", "2001:db8::1",
        "2002:7f00:1::", "2002:808:808::1", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254",
        "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1",
    ],
)  # fmt: skip
def test_an_address_that_only_we_could_reach_is_not_public(text: str) -> None:
    assert not is_public(parse_address(text))


@pytest.mark.parametrize(
    "text", ["1.1.1.1", "8.8.8.8", "100.63.255.255", "172.32.0.1", "::ffff:8.8.8.8", "2606:4700::1"]
)
def test_an_address_of_the_internet_is_public(text: str) -> None:
    assert is_public(parse_address(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1", True),
        ("0.0.0.0", True),  # noqa: S104  # asked about, not bound
        ("::1", True),
        ("203.0.113.9", False),
        ("2001:db8::9", False),
    ],
)
def test_an_address_of_this_machine_is_local(text: str, expected: bool) -> None:
    assert is_local(parse_address(text)) is expected
