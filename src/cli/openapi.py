"""`workspace openapi`: print the interface description."""

import typer


def openapi() -> None:
    """Print the OpenAPI document of this build as JSON; it needs neither database nor settings."""
    from api.openapi_file import openapi_text

    typer.echo(openapi_text(), nl=False)
