"""Fixtures every test may ask for: a migrated database, workspaces with keys, an HTTP client."""

import gc
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from fastapi import FastAPI
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

import runtime.processes.bounded_processes
from cli.supervisor.development import DevelopmentIssuer, ensure_issuer
from cli.supervisor.state import choose_port
from models.registrations import register_models
from runtime.configuration.sections import ProviderSettings
from runtime.configuration.settings import Settings
from runtime.crypto import KeyRing
from tests.support.client import Client, Contract
from tests.support.document import DOCUMENT
from tests.support.endpoint import Serve, serving
from tests.support.events import check_logged_events
from tests.support.exploring import EXPLORE, FACTOR
from tests.support.interruptions import past_interruptions
from tests.support.patience import ENOUGH
from tests.support.postgres import migrated_database
from tests.support.spaces import MASTER_SECRET, MakeSpace, Space, make_space
from tests.support.watched import WatchedDatabase

pytest_plugins = ["tests.support.hang_report"]

# The same examples in every run; and a machine that stands still for a moment refutes nothing.
_PATIENT = hypothesis_settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.register_profile("same", _PATIENT, derandomize=True, max_examples=40)
hypothesis_settings.register_profile(EXPLORE, _PATIENT, max_examples=100 * FACTOR)
hypothesis_settings.load_profile("same")


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """Register the models, and set what holds for all tests of a process."""
    register_models()
    # What is meant to run into its limit does so after a quarter of its time.
    runtime.processes.bounded_processes.SECONDS = 0.5
    # Temporal looks for garbage four times less often, and takes that much more memory.
    os.environ.setdefault("GOGC", "400")
    # Its threads look for work in vain on cores that the test processes keep busy.
    os.environ.setdefault("GOMAXPROCS", "1")
    # Between Python and pytest, which holds what cannot be raised.
    sys.unraisablehook = past_interruptions(sys.unraisablehook)
    # Until all tests are found, what is made stays.
    gc.disable()


def pytest_make_parametrize_id(val: object) -> str | None:
    """Leave bytes out of names: packed ones differ by the second and process that makes them."""
    return "bytes" if isinstance(val, bytes) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first, so that all processes end at about the same time.

    Files with an `engine` come after all others: its worker takes the jobs and events that other
    tests carry out by hand in the database of the same process.
    """
    with_engine = {item.path for item in items if "engine" in getattr(item, "fixturenames", ())}
    items.sort(key=lambda item: (item.path in with_engine, -_seconds(item)))


def _seconds(item: pytest.Item) -> int:
    takes = item.get_closest_marker("takes")
    return 0 if takes is None else int(takes.kwargs["seconds"])


def pytest_collection_finish() -> None:
    """Look for no garbage among modules and tests."""
    gc.freeze()
    # By default a tenth of the time goes into looking for garbage among what stays.
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.fixture(scope="session")
def database_url() -> Iterator[str]:
    """The URL of this process's own migrated database."""
    with migrated_database() as url:
        yield url
        check_logged_events(url)


@pytest_asyncio.fixture(scope="session")
async def _watched_database(database_url: str) -> AsyncIterator[WatchedDatabase]:
    database = WatchedDatabase(database_url)
    yield database
    await database.close()


@pytest.fixture
def database(_watched_database: WatchedDatabase) -> Iterator[WatchedDatabase]:
    """A Database on a migrated schema; the test fails if anything commits behind its back."""
    _watched_database.stray_commits.clear()
    yield _watched_database
    assert _watched_database.stray_commits == []


@pytest.fixture(scope="session")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> DevelopmentIssuer:
    """The issuer whose sessions the application accepts."""
    directory: Path = tmp_path_factory.mktemp("issuer")
    return ensure_issuer(directory)


@pytest.fixture(scope="session")
def settings(
    database_url: str, issuer: DevelopmentIssuer, tmp_path_factory: pytest.TempPathFactory
) -> Settings:
    """The application's settings."""
    objects = tmp_path_factory.mktemp("objects")
    return Settings(
        database_url=database_url,
        secret_key=MASTER_SECRET,
        oidc_issuer=issuer.issuer,
        oidc_audience=issuer.audience,
        oidc_jwks=str(issuer.jwks_path),
        object_store=objects.as_uri(),
        rate_limit_key=0,
        rate_limit_run_start=0,
        rate_limit_webhook=0,
        rate_limit_form=0,
        rate_limit_form_address=0,
        rate_limit_visitor=0,
        outbound_allow=("127.0.0.0/8",),
        public_url="https://platform.test",
        providers={
            "github": ProviderSettings.model_validate({"clientId": "platform"}),
            # Where a test may have it answer.
            "google_drive": ProviderSettings.model_validate(
                {"apiUrl": f"http://127.0.0.1:{choose_port(0, None, '')}"}
            ),
        },
    )


@pytest.fixture(scope="session")
def keys(settings: Settings) -> KeyRing:
    """The keys derived from the test secret."""
    return KeyRing(settings.secret_keys)


@pytest_asyncio.fixture(scope="session")
async def _app(settings: Settings, _watched_database: WatchedDatabase) -> AsyncIterator[FastAPI]:
    from api.app import create_app  # noqa: PLC0415  # tests below the API need none of it
    from api.kernel.limits import ConnectionShares  # noqa: PLC0415

    app = create_app(settings, database=_watched_database, background=())
    # Many calls of one caller take long where many tests share a processor.
    share = _watched_database.connections // 2
    app.state.services.shares = ConnectionShares(share, patience=ENOUGH)
    async with app.router.lifespan_context(app):
        yield app


@pytest.fixture
def app(_app: FastAPI, database: WatchedDatabase) -> FastAPI:  # noqa: ARG001  # watches commits
    """The application, running on the test database."""
    return _app


@pytest.fixture(scope="session")
def contract() -> Contract:
    """The OpenAPI document answers are held against, as it is committed."""
    return Contract(DOCUMENT)


@pytest.fixture
def workspace(database: WatchedDatabase, keys: KeyRing) -> MakeSpace:
    """Makes workspaces: `space = await workspace()`."""

    async def make() -> Space:
        return await make_space(database, keys)

    return make


@pytest_asyncio.fixture
async def space(workspace: MakeSpace) -> Space:
    """The workspace that `client` is in."""
    return await workspace()


@pytest_asyncio.fixture
async def foreign(workspace: MakeSpace) -> Space:
    """Another workspace, with its own owner and key."""
    return await workspace()


@pytest_asyncio.fixture
async def client(app: FastAPI, contract: Contract, space: Space) -> AsyncIterator[Client]:
    """A client with the key of `space`; every answer is held against the OpenAPI document."""
    async with Client(app, contract, space.token) as client:
        yield client


@pytest_asyncio.fixture
async def serve() -> AsyncIterator[Serve]:
    """Starts servers that answer what a test says."""
    async with serving() as serve:
        yield serve
