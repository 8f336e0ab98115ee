from ipaddress import ip_address

import pytest

from runtime.outbound import OutboundPolicy


def test_a_policy_reads_hosts_addresses_and_ranges() -> None:
    policy = OutboundPolicy.from_entries(
        [" Intranet.example", "10.1.0.0/16", "127.0.0.1 ", "[::1]"]
    )
    assert policy.permits("Intranet.Example.", ip_address("192.168.1.1"))
    assert policy.permits("other.example", ip_address("10.1.2.3"))
    assert policy.permits("localhost", ip_address("127.0.0.1"))
    assert policy.permits("localhost", ip_address("::1"))
    assert not policy.permits("other.example", ip_address("10.2.0.1"))
    assert not policy.permits("sub.intranet.example", ip_address("192.168.1.1"))


def test_an_empty_list_allows_the_internet_alone() -> None:
    policy = OutboundPolicy.from_entries([])
    assert policy.permits("a.example", ip_address("1.1.1.1"))
    assert not policy.permits("a.example", ip_address("127.0.0.1"))


@pytest.mark.parametrize(
    "text", ["10.0.0.1/8", "http://a.example", "a b", "*.example", "127.1", "-"]
)
def test_an_unreadable_entry_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="is not a host name"):
        OutboundPolicy.from_entries(["ok.example", text])
