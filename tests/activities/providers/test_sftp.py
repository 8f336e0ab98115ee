"""The adapter of SSH servers, against the server of asyncssh."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import asyncssh
import pytest
import pytest_asyncio

from activities.providers.adapter import Listing, ProblemKind, ProviderAccess, ProviderProblem
from activities.providers.sftp import SftpAdapter
from models.sources.connections.providers import SftpConnection
from runtime.outbound.client import OutboundClient
from tests.support.provider_asking import access, listed_ids, named, problem_of

SECRET = "sftp-canary-52"
CHILDREN = 1_050


@dataclass(frozen=True, slots=True)
class Server:
    port: int
    host_key: str
    root: Path
    client_key: asyncssh.SSHKey


class _Accounts(asyncssh.SSHServer):
    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return (username, password) == ("ann", SECRET)


@pytest_asyncio.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    root = tmp_path_factory.mktemp("sftp")
    base = root / "base"
    (base / "Docs").mkdir(parents=True)
    (base / "Docs" / "plan.md").write_text("# Plan")
    (base / "photo.bin").write_bytes(b"\0" * 300_000)
    (root / "secret.txt").write_text("outside")
    (base / "way-out").symlink_to(root)
    (base / "Docs" / "circle").symlink_to(base)
    (base / "exe\u202egpj.txt").write_text("turned")
    (base / "a\\b").touch()
    (base / "many").mkdir()
    for number in range(CHILDREN):
        (base / "many" / f"{number:05}").touch()
    host_key = asyncssh.generate_private_key("ssh-ed25519")
    client_key = asyncssh.generate_private_key("ssh-ed25519")
    allowed = asyncssh.import_authorized_keys(client_key.export_public_key().decode())
    listening = await asyncssh.create_server(
        _Accounts,
        "127.0.0.1",
        0,
        server_host_keys=[host_key],
        sftp_factory=True,
        authorized_client_keys=allowed,
    )
    shown = " ".join(host_key.export_public_key().decode().split()[:2])
    yield Server(listening.get_port(), shown, root, client_key)
    listening.close()
    await listening.wait_closed()


@pytest.fixture
def sftp(outbound: OutboundClient) -> SftpAdapter:
    return SftpAdapter(outbound)


@pytest.fixture
def given(server: Server) -> ProviderAccess:
    config = {
        "host": "127.0.0.1",
        "port": server.port,
        "username": "ann",
        "hostKey": server.host_key,
        "directory": str(server.root / "base"),
    }
    SftpConnection.model_validate(config)
    return access(config, secret=SECRET)


@pytest.mark.long
async def test_folders_are_listed_and_links_are_not(
    sftp: SftpAdapter, given: ProviderAccess
) -> None:
    await sftp.check(given)
    assert await listed_ids(sftp, given, limit=2) == [
        "Docs",
        "exe\u202egpj.txt",
        "many",
        "photo.bin",
    ]
    page = await sftp.browse(given, Listing())
    assert page.resources[1].name == "exegpj.txt"
    assert await listed_ids(sftp, given, "Docs") == ["Docs/plan.md"]
    found = await listed_ids(sftp, given, "many", limit=100)
    assert found == [f"many/{number:05}" for number in range(CHILDREN)]


async def test_contents_are_read(
    sftp: SftpAdapter, given: ProviderAccess, server: Server, tmp_path: Path
) -> None:
    plan = await sftp.describe(given, named("file", "Docs/plan.md"))
    read = await sftp.read(given, plan)
    assert (read.format.value, read.content) == ("markdown", "# Plan")
    photo = await sftp.describe(given, named("file", "photo.bin"))
    assert (await sftp.read(given, photo)).format.value == "link"
    target = tmp_path / "file"
    done = await sftp.download(given, photo, target, {})
    assert target.read_bytes() == b"\0" * 300_000
    assert (await sftp.download(given, photo, target, done.validators)).unchanged
    (server.root / "base" / "Docs" / "plan.md").write_text("# Another plan")
    assert (await sftp.describe(given, plan)).revision != plan.revision


async def test_a_key_signs_in_too(sftp: SftpAdapter, given: ProviderAccess, server: Server) -> None:
    private = server.client_key.export_private_key().decode()
    with_key = access({**given.config, "auth": "key"}, secret=private)
    await sftp.check(with_key)
    broken = access({**given.config, "auth": "key"}, secret="no key")
    assert await problem_of(sftp.check(broken)) is ProblemKind.AUTH


@pytest.mark.parametrize(
    ("external_id", "kind"),
    [
        ("../secret.txt", ProblemKind.INVALID),
        ("way-out/secret.txt", ProblemKind.GONE),
        ("way-out", ProblemKind.GONE),
        ("Docs/circle/Docs/plan.md", ProblemKind.GONE),
        ("/etc/passwd", ProblemKind.INVALID),
        ("missing", ProblemKind.GONE),
    ],
)
async def test_ids_that_lead_elsewhere(
    sftp: SftpAdapter, given: ProviderAccess, external_id: str, kind: ProblemKind
) -> None:
    wanted = named("file", external_id)
    assert await problem_of(sftp.describe(given, wanted)) is kind
    assert await problem_of(sftp.browse(given, Listing(external_id))) is kind


async def test_another_host_key_is_refused_before_the_password_is_sent(
    sftp: SftpAdapter, given: ProviderAccess
) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    pinned = access({**given.config, "hostKey": " ".join(other.split()[:2])}, secret=SECRET)
    with pytest.raises(ProviderProblem, match="host key of the server") as raised:
        await sftp.check(pinned)
    assert (raised.value.kind, SECRET in str(raised.value)) == (ProblemKind.AUTH, False)


async def test_a_refused_sign_in_is_denied(
    sftp: SftpAdapter, given: ProviderAccess, public_only: OutboundClient
) -> None:
    wrong = access(given.config, secret="wrong")
    assert await problem_of(sftp.check(wrong)) is ProblemKind.AUTH
    assert await problem_of(SftpAdapter(public_only).check(given)) is ProblemKind.INVALID
    nobody = access({**given.config, "port": 1}, secret=SECRET)
    assert await problem_of(sftp.check(nobody)) is ProblemKind.UNAVAILABLE
