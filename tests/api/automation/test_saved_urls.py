"""A URL that no call would be let through to is refused where it is saved."""

import json

import pytest

from cli.supervisor.development import DevelopmentIssuer
from tests.support.client import Client
from tests.support.engine import graph, node
from tests.support.spaces import Space

PRIVATE = [
    "http://10.0.0.1/",
    "http://example.com#@127.0.0.1/",
    "http://@93.184.215.14/",
    "http://10.0.0.1:5432/",
    "http://169.254.169.254:22/",
    "http://93.184.215.14:6379/",
    "https://93.184.215.14:7233/",
    "http://10。0。0。2/",
    "http://0xa000002/",
    "http://012.0.0.2./",
    "http://[::ffff:10.0.0.2]/",
    "http://[fe80::1]/",
]
HOSTS = ["10.0.0.2", "0xa000002", "012.0.0.2", "10.2", "10.0.0.2.", "fe80::1", "::ffff:10.0.0.2"]
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIDk3UzdqYcgL6wdfmnXGDu4sFCGHCO3IzNAEZGfWxVh"


@pytest.mark.parametrize("url", PRIVATE)
async def test_a_config_with_a_private_host_is_not_saved(
    client: Client, space: Space, url: str
) -> None:
    request = {"kind": "http_request", "url": url}
    webhook = {"kind": "send_webhook", "url": url, "type": "x"}
    steps = [{"id": "one", "kind": "http_request", "config": {"url": url}}]
    places = {
        "data-sources": {"label": "Rows", "kind": "http_json", "config": {"url": url}},
        "data-sources/preview": {"kind": "http_json", "config": {"url": url}},
        "data-sources/import-spreadsheet": {"label": "Rows", "kind": "url", "url": url},
        "webhook-endpoints": {"url": url},
        "integrations/connections": {"label": "H", "provider": "http", "config": {"baseUrl": url}},
    }
    refused = [
        await client.post(f"{space.path}/actions", json=body)
        for body in (
            {"label": "Call", "kind": "http_request", "config": request},
            {"label": "Tell", "kind": "send_webhook", "config": webhook},
            {"label": "Both", "kind": "sequence", "config": {"kind": "sequence", "steps": steps}},
        )
    ]
    refused += [
        await client.post(f"{space.path}/{place}", json=body) for place, body in places.items()
    ]
    for provider, config in (
        ("webdav", {"baseUrl": url, "auth": "none"}),
        ("s3", {"bucket": "reports", "endpoint": url}),
    ):
        body = {"label": "C", "provider": provider, "config": config}
        refused.append(await client.post(f"{space.path}/integrations/connections", json=body))
    settings = {"baseUrl": url, "model": "some"}
    refused.append(await client.put(f"{space.path}/ai/model-settings", json=settings))
    for answer in refused:
        assert answer.status_code == 400, answer.text
        (detail,) = answer.json()["details"]
        assert detail["path"].lower().endswith(("url", "endpoint")), detail
    body = {"label": "Calls", "graph": graph(node("call", "http_request", url=url))}
    made = (await client.post(f"{space.path}/automations", json=body)).json()["data"]
    (issue,) = made["referenceIssues"]
    assert issue["nodeId"] == "call"
    assert issue["message"].startswith("config.url: ")
    published = await client.post(f"{space.path}/automations/{made['id']}/publish", json={})
    assert published.status_code == 400


@pytest.mark.parametrize("host", HOSTS)
async def test_no_connection_is_saved_to_a_private_server(
    client: Client, space: Space, host: str
) -> None:
    database = {"host": host, "database": "shop", "user": "reader"}
    for provider, config in (
        ("postgresql", database),
        ("mysql", database),
        ("sftp", {"host": host, "username": "ann", "hostKey": HOST_KEY}),
    ):
        body = {"label": "C", "provider": provider, "config": config}
        answer = await client.post(f"{space.path}/integrations/connections", json=body)
        assert answer.status_code == 400, answer.text
        assert "private address" in answer.json()["details"][0]["message"]


@pytest.mark.parametrize("url", PRIVATE)
async def test_no_push_endpoint_is_saved_that_is_private(
    client: Client, space: Space, issuer: DevelopmentIssuer, url: str
) -> None:
    mine = client.with_token(issuer.mint(space.email, "Test"))
    token = json.dumps({"endpoint": url, "keys": {"p256dh": "B", "auth": "A"}})
    body = {"installationId": "mine", "platform": "web", "token": token}
    for path in ("/v1/me/push-devices", "/v1/me/push-devices/register"):
        answer = await mine.post(path, json=body)
        assert answer.status_code == 400, answer.text
        assert "token: " in answer.json()["details"][0]["message"]
    token = json.dumps({"endpoint": "https://push.example/1", "keys": {}})
    assert (await mine.post("/v1/me/push-devices", json={**body, "token": token})).is_success


async def test_a_host_that_operators_allow_is_saved(client: Client, space: Space) -> None:
    for url in ("http://127.0.0.1:8080/", "https://a.example/"):
        config = {"kind": "http_request", "url": url}
        body = {"label": "Call", "kind": "http_request", "config": config}
        answer = await client.post(f"{space.path}/actions", json=body)
        assert answer.status_code == 201, answer.text
