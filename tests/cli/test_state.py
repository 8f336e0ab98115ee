import json
import socket
import stat
from pathlib import Path

import pytest

from cli.console import StartError
from cli.supervisor.state import LOOPBACK, StateDir, choose_port, read_object, tail, write_private


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    directory = StateDir(tmp_path / "state")
    directory.prepare()
    return directory


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_secrets_are_made_once_and_are_private(
    state: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WORKSPACE_SECRET_KEY", raising=False)
    key = state.secret_key()
    state.remember_secrets(apiKey="k")
    assert StateDir(state.root).secret_key() == key
    assert state.secrets() == {"WORKSPACE_SECRET_KEY": key, "apiKey": "k"}
    assert len(key) >= 32
    assert mode(state.root / "secrets.json") == 0o600


def test_a_key_of_the_environment_wins(state: StateDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKSPACE_SECRET_KEY", "given")
    assert state.secret_key() == "given"
    assert state.secrets() == {}


@pytest.mark.parametrize("left", [None, {"apiKey": "k"}])
def test_a_master_secret_that_is_missing_beside_a_database_is_not_replaced(
    state: StateDir, monkeypatch: pytest.MonkeyPatch, left: dict[str, str] | None
) -> None:
    monkeypatch.delenv("WORKSPACE_SECRET_KEY", raising=False)
    state.postgres_data.mkdir(parents=True)
    if left is not None:
        state.remember_secrets(**left)
    with pytest.raises(StartError, match=r"secrets\.json\. .* Restore the file from a backup"):
        state.secret_key()
    assert state.secrets() == (left or {})
    monkeypatch.setenv("WORKSPACE_SECRET_KEY", "the same as before")
    assert state.secret_key() == "the same as before"


def test_a_state_directory_has_one_owner(state: StateDir) -> None:
    assert not state.is_owned()
    with state.locked():
        assert state.is_owned()
        with pytest.raises(StartError, match="already running"), StateDir(state.root).locked():
            pytest.fail("two owners")
    assert not state.is_owned()
    with state.locked():
        pass


def test_a_published_connection_is_private_and_goes_away(state: StateDir) -> None:
    state.publish({"baseUrl": "http://127.0.0.1:1"})
    assert json.loads(state.connection.read_text()) == {"baseUrl": "http://127.0.0.1:1"}
    assert mode(state.connection) == 0o600
    state.unpublish()
    state.unpublish()
    assert not state.connection.exists()


def test_a_directory_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match="Choose another --state-dir"):
        StateDir(tmp_path / "file" / "state").prepare()


def test_a_write_replaces_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("x" * 1000)
    write_private(path, {"a": 1})
    assert read_object(path) == {"a": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_a_damaged_file_is_reported(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(StartError, match="is damaged"):
        read_object(tmp_path / "a.json")


def test_a_log_that_grew_large_begins_anew_under_its_writer(state: StateDir) -> None:
    state.rotate_log("api")
    with state.log("api").open("ab", buffering=0) as writer:
        writer.write(b"x" * 11 * 1024 * 1024)
        state.rotate_log("api")
        writer.write(b"later")
        state.rotate_log("api")
    assert state.log("api").read_bytes() == b"later"
    assert (state.logs / "api.log.1").stat().st_size == 11 * 1024 * 1024
    assert sorted(path.name for path in state.logs.iterdir()) == ["api.log", "api.log.1"]


def test_the_end_of_a_log_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    assert tail(path) == ""
    path.write_text("\n".join(str(number) for number in range(10_000)))
    assert tail(path, 2) == "9998\n9999"


def test_a_taken_port_is_refused_and_a_remembered_one_is_kept() -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartError, match="--port 0"):
            choose_port(port, None, "--port")
        assert choose_port(0, port, "--port") != port
    assert choose_port(0, port, "--port") == port
    assert choose_port(port, None, "--port") == port


def test_ports_that_are_chosen_together_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    first = choose_port(0, None, "")
    second = choose_port(0, None, "", [first])
    monkeypatch.setattr("cli.supervisor.state._BELOW_EPHEMERAL", [first, second])
    assert choose_port(0, first, "", [first]) == second
    with pytest.raises(StartError, match="No free port"):
        choose_port(0, None, "--port", [first, second])
    with pytest.raises(StartError, match="--ui-port 0"):
        choose_port(first, None, "--ui-port", [first])


def test_a_free_port_is_none_that_a_connection_is_given() -> None:
    given = Path("/proc/sys/net/ipv4/ip_local_port_range")
    if not given.exists():
        pytest.skip("Linux says there which ports connections are given.")
    lowest = int(given.read_text().split()[0])
    if lowest < 32_768:
        pytest.skip("This machine gives connections more ports than Linux does by default.")
    assert choose_port(0, None, "") < lowest
