"""The demo's platform: a stand-in for `workspace up` says how it was started."""

import asyncio
import json
import sys
from pathlib import Path

import pytest
from rich.console import Console

from cli import demo
from cli.console import StartError
from cli.demo import FlakyEndpoint
from cli.supervisor.state import StateDir, read_object

UP = """#!{python}
import json, os, pathlib, signal, sys
[state] = [pathlib.Path(one[12:]) for one in sys.argv if one.startswith("--state-dir=")]
state.mkdir()
signal.signal(signal.SIGTERM, lambda *_: (pathlib.Path({ended!r}).touch(), sys.exit(0)))
draft = state / "draft"
draft.write_text(json.dumps({{"environment": dict(os.environ), "arguments": sys.argv}}))
draft.rename(state / "connection.json")
signal.pause()
"""
THEIRS = {
    "WORKSPACE_STATE_DIR": ".state",
    "WORKSPACE_OUTBOUND_ALLOW": "10.0.0.0/8",
    "DATABASE_URL": "postgresql://theirs/data",
    "TEMPORAL_ADDRESS": "theirs:7233",
}


@pytest.fixture
def ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that the stand-in makes when it is asked to end."""
    ended, program = tmp_path / "ended", tmp_path / "up"
    program.write_text(UP.format(python=sys.executable, ended=str(ended)))
    program.chmod(0o700)
    monkeypatch.setattr("cli.demo.sys.executable", str(program))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    for name, value in THEIRS.items():
        monkeypatch.setenv(name, value)
    return ended


def test_the_demo_leaves_other_platforms_alone_and_nothing_behind(
    ended: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Path, str, str]] = []

    async def play(state: StateDir, endpoint: FlakyEndpoint, _: Console, *, waits: bool) -> None:
        assert not waits, "nobody is there to look at pages"
        told = read_object(state.connection)
        ours = {name: value for name, value in told["environment"].items() if name in THEIRS}
        assert "--port=0" in told["arguments"]
        seen.append((state.root, endpoint.address, json.dumps(ours)))

    monkeypatch.setattr("cli.demo.play", play)
    asyncio.run(demo.run_demo())
    [(root, address, ours)] = seen
    assert json.loads(ours) == {"WORKSPACE_OUTBOUND_ALLOW": address}
    assert ended.exists()
    assert not root.parent.exists()


def test_a_demo_that_fails_cleans_up_as_well(
    ended: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(*_: object, **__: object) -> None:
        raise StartError("The run failed.")

    monkeypatch.setattr("cli.demo.play", play)
    with pytest.raises(StartError, match="The run failed"):
        asyncio.run(demo.run_demo())
    assert ended.exists()
    assert not list(tmp_path.glob("workspace-demo-*"))
