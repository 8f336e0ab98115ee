from ipaddress import ip_address

import pytest

from runtime.outbound_policy import OutboundPolicy


def test_a_policy_reads_hosts_addresses_and_ranges() -> None:
    policy = OutboundPolicy.from_entries(
        [" Intranet.example", "10.1.0.0/16", "127.0.0.1 ", "[::1]", "fd00::/8"]
    )
    assert policy.permits("intranet.Example.", ip_address("192.168.1.1"), 80)
    assert policy.permits("other.example", ip_address("10.1.2.3"), 80)
    assert policy.permits("localhost", ip_address("127.0.0.1"), 80)
    assert policy.permits("localhost", ip_address("::1"), 80)
    assert policy.permits("localhost", ip_address("fd12::1"), 80)
    assert not policy.permits("other.example", ip_address("10.2.0.1"), 80)
    assert not policy.permits("sub.intranet.example", ip_address("192.168.1.1"), 80)


def test_an_entry_with_a_port_opens_that_port_alone() -> None:
    policy = OutboundPolicy.from_entries(["127.0.0.1:8100", "[::1]:8100", "intranet.example:443"])
    for host, address, port in [
        ("a.example", "127.0.0.1", 8100),
        ("a.example", "::1", 8100),
        ("intranet.example", "10.0.0.1", 443),
    ]:
        assert policy.permits(host, ip_address(address), port)
        assert not policy.permits(host, ip_address(address), 80)


def test_without_entries_only_the_internet_is_allowed() -> None:
    policy = OutboundPolicy.from_entries([])
    assert policy.permits("a.example", ip_address("1.1.1.1"), 80)
    assert not policy.permits("a.example", ip_address("127.0.0.1"), 80)


@pytest.mark.parametrize(
    "text",
    ["", "10.0.0.1/8", "http://a.example", "a b", "*.example", "127.1", "-", "a:b", "a:123456"],
)
def test_an_unreadable_entry_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="is not a host name"):
        OutboundPolicy.from_entries(["ok.example", text])
