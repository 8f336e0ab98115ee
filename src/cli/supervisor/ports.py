"""Ports on loopback that stay the same from one start to the next."""

import socket
from collections.abc import Collection
from secrets import SystemRandom

import typer
from typer.models import OptionInfo

from cli.supervisor.errors import StartError

LOOPBACK = "127.0.0.1"
_HIGHEST = 65_535
_BELOW_EPHEMERAL = range(20_000, 32_768)
"""No outgoing connection is given one of them: a free one stays free until a server listens."""


def port_option(name: str, text: str, envvar: str | None = None) -> OptionInfo:
    """An option of the command line that takes a port."""
    option: OptionInfo = typer.Option(name, parser=_port, metavar="PORT", envvar=envvar, help=text)
    return option


def _port(text: str) -> int:
    if str(text).isdecimal() and int(text) <= _HIGHEST:
        return int(text)
    raise typer.BadParameter(f"{text} is no port: a number up to {_HIGHEST}, or 0 for a free one.")


def choose_port(
    requested: int, remembered: int | None, option: str, reserved: Collection[int] = ()
) -> int:
    """The port asked for; for 0 the one remembered if it is still free, else a free one.

    A port is never one of the `reserved`, which nobody listens on yet. Raises StartError
    when the port asked for is taken, or all are.
    """
    if requested != 0:
        if requested not in reserved and _is_free(requested):
            return requested
        raise StartError(
            f"Port {requested} is in use: choose another with {option}, or {option} 0 for any."
        )
    if remembered is not None and remembered not in reserved and _is_free(remembered):
        return remembered
    for port in SystemRandom().sample(_BELOW_EPHEMERAL, len(_BELOW_EPHEMERAL)):
        if port not in reserved and _is_free(port):
            return port
    raise StartError(f"No port of {LOOPBACK} is free: choose one with {option}.")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As servers do: a port whose last connections are still being closed counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
