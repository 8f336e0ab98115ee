"""A URL that no call would be let through to is refused where it is saved."""

import pytest

from tests.support.client import Client
from tests.support.engine import graph, node
from tests.support.spaces import Space

PRIVATE = [
    "http://10.0.0.1/",
    "http://example.com#@127.0.0.1/",
    "http://@93.184.215.14/",
    "http://10.0.0.1:5432/",
    "http://169.254.169.254:22/",
]


@pytest.mark.parametrize("url", PRIVATE)
async def test_what_names_a_private_host_is_not_saved(
    client: Client, space: Space, url: str
) -> None:
    request = {"kind": "http_request", "url": url}
    webhook = {"kind": "send_webhook", "url": url, "type": "x"}
    steps = [{"id": "one", "kind": "http_request", "config": {"url": url}}]
    source = {"label": "Rows", "kind": "http_json", "config": {"url": url}}
    refused = [
        await client.post(f"{space.path}/actions", json=body)
        for body in (
            {"label": "Call", "kind": "http_request", "config": request},
            {"label": "Tell", "kind": "send_webhook", "config": webhook},
            {"label": "Both", "kind": "sequence", "config": {"kind": "sequence", "steps": steps}},
        )
    ]
    refused.append(await client.post(f"{space.path}/data-sources", json=source))
    for answer in refused:
        assert answer.status_code == 400, answer.text
        assert [one["path"].endswith("url") for one in answer.json()["details"]] == [True]
    body = {"label": "Calls", "graph": graph(node("call", "http_request", url=url))}
    made = (await client.post(f"{space.path}/automations", json=body)).json()["data"]
    (issue,) = made["referenceIssues"]
    assert issue["nodeId"] == "call"
    assert issue["message"].startswith("config.url: ")
    published = await client.post(f"{space.path}/automations/{made['id']}/publish", json={})
    assert published.status_code == 400


async def test_what_operators_allow_is_saved(client: Client, space: Space) -> None:
    for url in ("http://127.0.0.1:8080/", "https://a.example/"):
        config = {"kind": "http_request", "url": url}
        body = {"label": "Call", "kind": "http_request", "config": config}
        answer = await client.post(f"{space.path}/actions", json=body)
        assert answer.status_code == 201, answer.text
