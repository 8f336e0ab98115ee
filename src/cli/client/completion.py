"""`workspace completion`: the script by which a shell completes the commands."""

from typing import Annotated

import typer

_SHELLS = ("bash", "zsh", "fish")


COMPLETES = "_WORKSPACE_COMPLETE"
"""The variable by which the script asks what may follow."""


def completion(
    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="The shell.")],
) -> None:
    """Print the completion of a shell, which its start file evaluates."""
    from typer._completion_shared import get_completion_script

    if shell not in _SHELLS:
        raise typer.BadParameter(f"{shell!r} is none of {', '.join(_SHELLS)}.")
    words = {"prog_name": "workspace", "complete_var": COMPLETES, "shell": shell}
    typer.echo(get_completion_script(**words))
