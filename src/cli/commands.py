"""The commands of `workspace`, and the functions of commands that only print a text."""

import json
from importlib.metadata import version as release_of
from typing import Annotated

import typer

from cli.client.events import events
from cli.client.impact import impact
from cli.client.import_commands import import_file, legacy_import, refresh
from cli.client.incidents import incidents
from cli.client.profiles import profile
from cli.client.runs import runs
from cli.convert.command import convert
from cli.deploy.command import deploy
from cli.doctor import doctor
from cli.help import describe
from cli.processes import api, demo, migrate, status, stop, up, worker
from cli.quarantine.command import quarantine
from cli.replay.command import history, replay
from cli.secret_keys import rotate_secret
from cli.sign_in import session, sign_in

app = typer.Typer(
    name="workspace",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(release_of("workspace-platform"))
        raise typer.Exit


@app.callback()
def workspace(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Run and manage the workspace platform."""


def openapi() -> None:
    """Print the OpenAPI document as JSON. Needs no database or settings."""
    from api.app import openapi_text

    typer.echo(openapi_text(), nl=False)


for command in (
    up,
    status,
    stop,
    api,
    worker,
    migrate,
    doctor,
    session,
    replay,
    history,
    quarantine,
    refresh,
    openapi,
    demo,
    convert,
    impact,
):
    app.command()(command)


app.command("sign-in")(sign_in)
app.command("rotate-secret")(rotate_secret)
app.command("import")(import_file)
app.add_typer(legacy_import)
app.add_typer(deploy)
app.add_typer(profile)
app.add_typer(runs)
app.add_typer(incidents)
app.add_typer(events)

_SHELLS = ("bash", "zsh", "fish")

COMPLETES = "_WORKSPACE_COMPLETE"
"""The variable by which the script asks for completions."""


def completion(
    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="Shell.")],
) -> None:
    """Print a shell completion script, to evaluate in the start file of the shell."""
    from typer._completion_shared import get_completion_script

    if shell not in _SHELLS:
        raise typer.BadParameter(f"Unknown shell {shell!r}. Use {', '.join(_SHELLS)}.")
    words = {"prog_name": "workspace", "complete_var": COMPLETES, "shell": shell}
    typer.echo(get_completion_script(**words))


app.command()(completion)


def bundle_schema() -> None:
    """Print the JSON Schema of bundles. Needs no database or settings."""
    from models.workspace.bundles.lines import bundle_schema as schema

    typer.echo(json.dumps(schema(), indent=2))


app.command("bundle-schema")(bundle_schema)
describe(app)
