"""The header of a request that says who sends it."""

import base64
from typing import Literal

AuthScheme = Literal["none", "bearer", "basic", "header"]


def authentication(
    scheme: AuthScheme, credential: str, header_name: str | None = None
) -> dict[str, str]:
    """The header with a credential: a token, `user:password` for basic (RFC 7617), or a value."""
    match scheme:
        case "none":
            return {}
        case "bearer":
            return {"Authorization": f"Bearer {credential}"}
        case "basic":
            encoded = base64.b64encode(credential.encode()).decode()
            return {"Authorization": f"Basic {encoded}"}
        case _:
            assert header_name is not None, "the config names the header"
            return {header_name: credential}
