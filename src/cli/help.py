"""The help of commands: their docstrings as paragraphs, and examples."""

import inspect
from collections.abc import Mapping, Sequence

import typer

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
