"""`workspace completion`: the script by which a shell completes the commands."""

from typing import Annotated

import typer

_SHELLS = ("bash", "zsh", "fish")


COMPLETES = "_WORKSPACE_COMPLETE"
"""The variable by which the script asks what may follow."""


def completion(
    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="The shell.")],
) -> None:
    """Print the completion of a shell: `eval "$(workspace completion bash)"` in its start file."""
    from typer._completion_shared import get_completion_script

    if shell not in _SHELLS:
        raise typer.BadParameter(f"{shell!r} is none of {', '.join(_SHELLS)}.")
    script = get_completion_script(prog_name="workspace", complete_var=COMPLETES, shell=shell)
    typer.echo(script)
