"""`workspace legacy-import`: whole workspaces come in, each step by a command of its own."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from cli.console import aside, terminal
from cli.rows.connection import API_KEY, STATE_DIR, URL, perform

legacy_import = typer.Typer(
    name="legacy-import",
    help="Bring whole workspaces in: upload, look, approve, start, roll back.",
    no_args_is_help=True,
)

_RUNS = "/v1/admin/legacy-imports"
_PIECE = 1 << 20
_RUN = Annotated[str, typer.Argument(metavar="RUN", help="Id of the run.")]
_STANDS = frozenset({"awaiting_review", "approved"})

Place = tuple[Path, str | None, str | None]


@legacy_import.command()
def upload(
    file: Annotated[Path, typer.Argument(help="A bundle: zip or tar.zst.")],
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Upload a bundle, wait until it is checked, and tell what an import would do."""
    perform(_upload(file, (state_dir, url, api_key)))


@legacy_import.command()
def show(
    run: _RUN,
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Follow a run until a person has the next move, or it has ended; then tell what it came to."""
    perform(_decide(run, None, {}, (state_dir, url, api_key)))


@legacy_import.command()
def approve(
    run: _RUN,
    note: Annotated[str | None, typer.Option(help="What is to be kept of the decision.")] = None,
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Approve a run that was checked: it can then be started."""
    body = {} if note is None else {"note": note}
    perform(_decide(run, "approve", body, (state_dir, url, api_key)))


@legacy_import.command()
def start(
    run: _RUN,
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Import what was approved, and wait for the end. Ctrl-C leaves it going on."""
    perform(_decide(run, "start", {}, (state_dir, url, api_key)))


@legacy_import.command()
def cancel(
    run: _RUN,
    reason: Annotated[str | None, typer.Option(help="Why.")] = None,
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Cancel a run; what it has not finished is taken back."""
    body = {} if reason is None else {"reason": reason}
    perform(_decide(run, "cancel", body, (state_dir, url, api_key)))


@legacy_import.command()
def release(
    run: _RUN,
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Let people see the workspaces that were finished before a run was cancelled."""
    perform(_decide(run, "release", {}, (state_dir, url, api_key)))


@legacy_import.command()
def rollback(
    run: _RUN,
    reason: Annotated[str, typer.Option(help="Why.")],
    force: Annotated[
        bool, typer.Option("--force", help="Remove what was changed since as well.")
    ] = False,
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Take back what a run has imported, within 30 days. What was changed since is kept."""
    body = {"reason": reason, "force": force}
    perform(_decide(run, "rollback", body, (state_dir, url, api_key)))


async def _upload(file: Path, place: Place) -> None:
    from cli.api_client import api_client
    from cli.rows.display import Display

    size = _size(file)
    async with await api_client(*place) as client:
        with Display(aside()) as display:

            async def pieces() -> AsyncIterator[bytes]:
                done = 0
                with file.open("rb") as opened:
                    while piece := opened.read(_PIECE):
                        display.sent(done, size)
                        yield piece
                        done += len(piece)

            headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
            run = await client.call("POST", _RUNS, content=pieces(), headers=headers, timeout=3600)
        await _watch(client, run)


def _size(file: Path) -> int:
    """The bytes of a file. Raises StartError when there is none."""
    from cli.supervisor.errors import StartError

    if not file.is_file():
        raise StartError(f"There is no file {file}.")
    return file.stat().st_size


async def _decide(run_id: str, what: str | None, body: dict[str, Any], place: Place) -> None:
    from cli.api_client import api_client

    path = f"{_RUNS}/{quote(run_id, safe='')}"
    async with await api_client(*place) as client:
        if what is None:
            run = await client.call("GET", path)
        else:
            run = await client.call("POST", f"{path}/{what}", json=body)
        await _watch(client, run)


async def _watch(client: Any, run: dict[str, Any]) -> None:
    """Follow a run until nothing happens by itself any more, and tell what it came to."""
    from cli.legacy_imports.display import WorkspaceBars
    from cli.legacy_imports.report import tell
    from cli.rows.following import follow

    path = f"{_RUNS}/{run['id']}"
    if run["status"] not in _STANDS:
        with WorkspaceBars(aside()) as bars:
            await follow(
                client, path, run["pageUrl"], bars.run, lambda state: state["status"] in _STANDS
            )
        run = await client.call("GET", path)
    tell(terminal(), run, client.base_url)
    if run["status"] in {"failed", "rollback_failed"}:
        raise typer.Exit(1)
