"""The commands of `workspace`, and the functions of commands that only print a text.

A command is imported when it is called: the help needs none of them.
"""

import gc
import inspect
import json
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any

import structlog
import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group
from typing_extensions import override

COMMANDS: Mapping[str, tuple[str, str]] = {
    "up": ("cli.processes:up", "Start the platform and keep it running until Ctrl-C."),
    "status": (
        "cli.processes:status",
        "Show whether the platform runs here, and where. Exits with 1 if it does not run.",
    ),
    "stop": (
        "cli.processes:stop",
        (
            "Stop the platform that runs here, as Ctrl-C does."
            " Exits with 1 if it does not end in time."
        ),
    ),
    "api": ("cli.processes:api", "Run the API server."),
    "worker": ("cli.processes:worker", "Run a worker until SIGTERM, then drain it."),
    "migrate": (
        "cli.processes:migrate",
        "Migrate the database at DATABASE_URL. Safe to run concurrently.",
    ),
    "doctor": (
        "cli.doctor:doctor",
        "Check the settings and the services they refer to. Exits with 1 on a failure.",
    ),
    "session": ("cli.sign_in:session", "Print a session token for development, valid for 30 days."),
    "replay": (
        "cli.replay.command:replay",
        "Replay executions against the code of this checkout, or execute one node again.",
    ),
    "history": (
        "cli.replay.command:history",
        "Save the history of an execution, without names of machines and processes.",
    ),
    "quarantine": (
        "cli.quarantine.command:quarantine",
        "List quarantined runs and jobs, with the time, the lost workers and the ID of each.",
    ),
    "refresh": (
        "cli.client.import_commands:refresh",
        "Refresh a data source, and wait for the result.",
    ),
    "openapi": (
        "cli.commands:openapi",
        "Print the OpenAPI document as JSON. Needs no database or settings.",
    ),
    "demo": ("cli.processes:demo", "Run a sample automation, and kill the worker halfway."),
    "convert": (
        "cli.convert.command:convert",
        "Convert a Notion or Airtable export to a bundle. Exits with 1 if it cannot be read.",
    ),
    "impact": (
        "cli.client.impact:impact",
        "List the places that name a thing, and what a change of it breaks.",
    ),
    "sign-in": (
        "cli.sign_in:sign_in",
        "Print a one-time sign-in link for the console, valid for 30 minutes.",
    ),
    "rotate-secret": (
        "cli.secret_keys:rotate_secret",
        "Re-encrypt all values with the first key of WORKSPACE_SECRET_KEY.",
    ),
    "import": (
        "cli.client.import_commands:import_file",
        "Import a spreadsheet, and wait for the result.",
    ),
    "completion": (
        "cli.commands:completion",
        "Print a shell completion script, to evaluate in the start file of the shell.",
    ),
    "bundle-schema": (
        "cli.commands:bundle_schema",
        "Print the JSON Schema of bundles. Needs no database or settings.",
    ),
    "legacy-import": (
        "cli.client.import_commands:legacy_import",
        (
            "Import whole workspaces: upload, review, approve, start, roll back."
            " Exits with 1 on failure."
        ),
    ),
    "deploy": (
        "cli.deploy.command:deploy",
        (
            "Manage worker builds: status, ramp, promote, roll back, drain."
            " Exits with 1 on an error, or if work stays open on a drained build."
        ),
    ),
    "profile": (
        "cli.client.profiles:profile",
        "Manage profiles: the URL of a platform and an API key of one workspace.",
    ),
    "runs": (
        "cli.client.runs:runs",
        "List and manage runs of automations. Exits with 3 on an API error.",
    ),
    "incidents": (
        "cli.client.incidents:incidents",
        "List and manage incidents: groups of similar failures. Exits with 3 on an API error.",
    ),
    "events": (
        "cli.client.events:events",
        "List and replay events that reached automations. Exits with 3 on an API error.",
    ),
}
"""In the order of the help: where each command or group is, and its line of the help."""

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


def loaded(name: str) -> TyperGroup:
    """The program with one of its commands or groups, which is imported."""
    module, _, attribute = COMMANDS[name][0].partition(":")
    part = getattr(import_module(module), attribute)
    # Standard output is for results, which may be JSON.
    structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))
    # The entry point disables it for the imports.
    gc.enable()
    program = typer.Typer()
    if isinstance(part, typer.Typer):
        program.add_typer(part)
    else:
        program.command(name)(part)
    describe(program)
    return get_group(program)


class _Listed(TyperCommand):
    """A name and a line of the help, in whose place the command itself is called."""

    @override
    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        name = str(self.name)
        return loaded(name).commands[name].make_context(info_name, args, parent, **extra)


app = typer.Typer(
    name="workspace",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version as release_of

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


for listed, (_, line) in COMMANDS.items():
    app.command(listed, cls=_Listed, help=line)(lambda: None)


def openapi() -> None:
    """Print the OpenAPI document as JSON. Needs no database or settings."""
    from api.app import openapi_text

    typer.echo(openapi_text(), nl=False)


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


def bundle_schema() -> None:
    """Print the JSON Schema of bundles. Needs no database or settings."""
    from models.workspace.bundles.lines import bundle_schema as schema

    typer.echo(json.dumps(schema(), indent=2))
