"""Choices on the wire (interface, Set OAuth client workspace choice; decisions C15, C18)."""

from typing import Annotated

from pydantic import Field

from models.core.base import EXAMPLE_ID, Id, Input, InputId, Nullable, Shape, example

OauthClientId = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[\x21-\x7e]+$")]
"""An identifier of a client: visible ASCII characters (RFC 6749, appendix A.1)."""


class ChooseWorkspace(Input):
    """Body of the choice; it replaces the one before."""

    model_config = example({"oauthClientId": "example-client", "workspaceId": EXAMPLE_ID})

    oauth_client_id: OauthClientId
    workspace_id: InputId


class OauthClientWorkspace(Shape):
    """The workspace that the caller last chose for a client; null when there is none."""

    oauth_client_id: str
    workspace_id: Nullable[Id]
