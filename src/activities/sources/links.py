"""The header Link (RFC 8288): which URL has a relation to the answer that it stands in."""

import re
from collections.abc import Iterator, Mapping
from urllib.parse import urljoin

_SEPARATED = re.compile(r"[\s,]*")
_VALUE = r'"(?:[^"\\]|\\.)*"|[^\s;,"]*'
_PARAMETER = rf';\s*([^\s=;,"]+)(?:\s*=\s*({_VALUE}))?'
_LINK = re.compile(rf'<([^<>]*)>((?:\s*;\s*[^\s=;,"]+(?:\s*=\s*(?:{_VALUE}))?)*)\s*;?\s*(?=,|$)')
_PARAMETERS = re.compile(_PARAMETER)
_ESCAPED = re.compile(r"\\(.)")


def linked(header: str, relation: str, base: str) -> str | None:
    """The URL of the first link of this relation, resolved against the URL of the answer."""
    for target, parameters in _links(header):
        # A link with an anchor is one of another resource (section 3.2).
        if urljoin(base, parameters.get("anchor", "")) != base:
            continue
        if relation in parameters.get("rel", "").lower().split():
            return urljoin(base, target.strip())
    return None


def _links(header: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The links up to the first that cannot be read; of a repeated parameter the first counts."""
    place = _end(_SEPARATED.match(header))
    while (found := _LINK.match(header, place)) is not None:
        parameters: dict[str, str] = {}
        for name, value in _PARAMETERS.findall(found[2]):
            parameters.setdefault(name.lower(), _plain(value))
        yield found[1], parameters
        place = _end(_SEPARATED.match(header, found.end()))


def _plain(value: str) -> str:
    return _ESCAPED.sub(r"\1", value[1:-1]) if value.startswith('"') else value


def _end(found: re.Match[str] | None) -> int:
    assert found is not None, "the pattern takes nothing, too"
    return found.end()
