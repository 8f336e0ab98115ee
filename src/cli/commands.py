"""The commands of `workspace`, and the functions of commands that only print a text."""

import inspect
import json
from collections.abc import Mapping, Sequence
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
from cli.processes import api, demo, migrate, status, stop, up, worker
from cli.quarantine.command import quarantine
from cli.replay.command import history, replay
from cli.secret_keys import rotate_secret
from cli.sign_in import session, sign_in

EXAMPLES: Mapping[str, Sequence[str]] = {
    "up": [
        "workspace up",
        "workspace up --state-dir trial --port 0 --temporal-port 0 --ui-port 0",
    ],
    "stop": ["workspace stop --timeout 30"],
    "status": ["workspace status --json"],
    "worker": ["workspace worker --queue io --queue io-overflow"],
    "session": ["workspace session ada@example.com --name Ada"],
    "sign-in": [
        "workspace sign-in",
        "workspace sign-in ada@example.com --new-workspace Analysis",
    ],
    "replay": [
        "workspace replay RUN",
        "workspace replay --since 24h --limit 100 --parallel 2",
        "workspace replay RUN --node call --scope items:3",
    ],
    "history": ["workspace history RUN --output temporal/histories/call.json"],
    "quarantine": ["workspace quarantine", "workspace quarantine --lift RUN"],
    "refresh": ["workspace refresh DATA_SOURCE"],
    "import": [
        "workspace import prices.xlsx --new Prices",
        "workspace import prices.csv --database DATABASE --key SKU",
        "workspace import --undo RUN",
    ],
    "demo": ["workspace demo", "workspace demo --into .state"],
    "convert": ["workspace convert notion export.zip bundle.zip --timezone Europe/Berlin"],
    "impact": [
        "workspace impact field FIELD --change convert",
        "workspace impact secret --key CRM_TOKEN",
    ],
    "completion": ["workspace completion bash >> ~/.bashrc"],
    "legacy-import upload": ["workspace legacy-import upload bundle.zip"],
    "legacy-import select": ["workspace legacy-import select RUN Sales --into WORKSPACE"],
    "legacy-import approve": ["workspace legacy-import approve RUN --only Sales"],
    "legacy-import rollback": ['workspace legacy-import rollback RUN --reason "Not yet"'],
    "deploy ramp": ["workspace deploy ramp BUILD --percent 10"],
    "deploy drain": ["workspace deploy drain BUILD --move --wait"],
    "profile add": ["workspace profile add production --url https://example.com"],
    "runs list": [
        "workspace runs list --status failed --period day",
        "workspace runs list --attribute order:4711 --json",
    ],
    "runs watch": ["workspace runs watch RUN"],
    "runs retry": ["workspace runs retry RUN --from start --version published"],
    "runs cancel": ["workspace runs cancel RUN --dry-run"],
    "runs undo": ["workspace runs undo RUN --preview"],
    "runs compare": ["workspace runs compare RUN", "workspace runs compare RUN OTHER_RUN"],
    "incidents list": ["workspace incidents list --state open"],
    "incidents assign": ["workspace incidents assign INCIDENT ada@example.com"],
    "incidents note": ['workspace incidents note INCIDENT "The provider is down."'],
    "incidents retry": ["workspace incidents retry INCIDENT --from start"],
    "incidents mute": ["workspace incidents mute INCIDENT"],
    "events list": ["workspace events list --source webhook --since 2026-07-01T00:00:00Z"],
    "events replay": ["workspace events replay EVENT --version draft --test"],
}
"""Calls of commands, by their names; what is in capitals is an ID."""


def describe(part: typer.Typer, above: str = "") -> None:
    """Give the commands of a part their help. What is wrapped in code is not in a terminal."""
    for command in part.registered_commands:
        function = command.callback
        assert function is not None, "a command is a function"
        name = command.name or function.__name__.replace("_", "-")
        paragraphs = (inspect.getdoc(function) or "").split("\n\n")
        command.help = "\n\n".join(" ".join(one.split()) for one in paragraphs)
        if examples := EXAMPLES.get(f"{above}{name}"):
            title = "Example:" if len(examples) == 1 else "Examples:"
            command.epilog = "\n\n".join([title, *examples])
    for group in part.registered_groups:
        assert group.typer_instance is not None, "a group has commands"
        describe(group.typer_instance, f"{group.typer_instance.info.name} ")


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
