"""`workspace openapi` and `workspace bundle-schema`: print what others build against."""

import json

import typer


def openapi() -> None:
    """Print the OpenAPI document of this build as JSON; it needs neither database nor settings."""
    from api.openapi_file import openapi_text

    typer.echo(openapi_text(), nl=False)


def bundle_schema() -> None:
    """Print the JSON Schema of bundles; it needs neither database nor settings."""
    from models.workspace.bundles.json_schema import bundle_schema as schema

    typer.echo(json.dumps(schema(), indent=2))
