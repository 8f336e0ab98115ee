"""The token endpoint of a provider, which gets secrets in the body."""

import dataclasses

import pytest

from activities.connections import TokenEndpoint, UnansweredError
from models.sources.authorizations.rules import REFRESH_TOKEN, oauth_client
from models.sources.connections.providers import ProviderName
from runtime.configuration.sections import ProviderSettings
from runtime.outbound.client import OutboundClient
from tests.support.endpoint import Serve, reply


async def test_a_redirect_does_not_pass_credentials_to_another_endpoint(
    outbound: OutboundClient, serve: Serve
) -> None:
    other = await serve(reply(200, {"access_token": "stolen"}))
    server = await serve(reply(307, b"", location=f"{other.url}token"))
    settings = {"airtable": ProviderSettings.model_validate({"clientId": "ours"})}
    client = oauth_client(ProviderName.AIRTABLE, settings)
    assert client is not None
    there = dataclasses.replace(client, token_url=f"{server.url}token")
    with pytest.raises(UnansweredError):
        await TokenEndpoint(outbound, there).refresh({REFRESH_TOKEN: "secret"})
    assert len(server.requests) == 1
    assert other.requests == []
