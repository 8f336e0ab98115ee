"""Callers of deprecated operations are notified, and the document shows them
(docs/compatibility.md).
"""

from datetime import date
from typing import Any

import pytest

from api.kernel.response_headers import deprecation_headers
from api.reference.openapi import render
from models.core.openapi import Deprecated
from tests.api.kernel.conftest import SOON, SOONER, router
from tests.support.client import Client

LATE = {"deprecation": "@1767225600", "sunset": "Fri, 01 Jan 2027 00:00:00 GMT"}
EARLY = {"deprecation": "@1772323200", "sunset": "Tue, 01 Sep 2026 00:00:00 GMT"}
BOTH = {"deprecation": LATE["deprecation"], "sunset": EARLY["sunset"]}


@pytest.mark.parametrize(
    ("method", "path", "body", "headers"),
    [
        ("GET", "/v1/aging/operations", None, LATE),
        ("GET", "/v1/aging/parameters", None, {}),
        ("GET", "/v1/aging/parameters?text=a", None, {}),
        ("GET", "/v1/aging/parameters?oldText=a", None, EARLY),
        ("POST", "/v1/aging/bodies", {}, {}),
        ("POST", "/v1/aging/bodies", {"parts": [{"label": "a"}]}, {}),
        ("POST", "/v1/aging/bodies", {"text": "a"}, EARLY),
        ("POST", "/v1/aging/bodies", {"parts": [{"label": "a"}, {"old": "b"}]}, LATE),
        ("POST", "/v1/aging/bodies", {"text": "a", "parts": [{"old": "b"}]}, BOTH),
        ("GET", "/v1/aging/answers", None, LATE),
        ("GET", "/v1/probes", None, {}),
    ],
)
async def test_the_headers_tell_who_uses_it(
    probes: Client, method: str, path: str, body: Any, headers: dict[str, str]
) -> None:
    answer = await probes.request(method, path, json=body)
    assert answer.status_code == 200, answer.text
    told = {name: answer.headers[name] for name in LATE if name in answer.headers}
    assert told == headers


def test_the_document_marks_it() -> None:
    document = render(router.routes)
    schemas = document["components"]["schemas"]
    marked = {"deprecated": True, "x-sunset": "2027-01-01"}
    operation = document["paths"]["/v1/aging/operations"]["get"]
    assert operation.items() >= marked.items()
    old, text = document["paths"]["/v1/aging/parameters"]["get"]["parameters"][:2]
    assert old["name"] == "oldText"
    assert old.items() >= {**marked, "x-sunset": "2026-09-01"}.items()
    assert "deprecated" not in text
    assert schemas["AgingPart"]["properties"]["old"].items() >= marked.items()
    assert schemas["Aged"]["properties"]["old"].items() >= marked.items()
    assert "deprecated" not in str(schemas["Aged"]["properties"]["value"])
    for path, methods in document["paths"].items():
        for described in methods.values():
            headers = described["responses"]["200"]["headers"]
            assert ({"Deprecation", "Sunset"} <= headers.keys()) == path.startswith("/v1/aging/")


def test_nothing_deprecated_has_no_headers() -> None:
    assert deprecation_headers([]) == {}
    assert deprecation_headers([SOON, SOONER]) == deprecation_headers([SOONER, SOON])
    day = date(1970, 1, 2)
    assert deprecation_headers([Deprecated(day, day)])["Deprecation"] == "@86400"
