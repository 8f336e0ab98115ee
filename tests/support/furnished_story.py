"""The history of an import of everything: of a workspace with rows of every kind."""

import tempfile
from collections.abc import Collection
from pathlib import Path
from unittest.mock import patch

from api.app import create_app
from cli.supervisor.development import ensure_issuer
from models.workspace.bundles.registry import KINDS
from models.workspace.legacy_imports import stages
from models.workspace.legacy_imports.rules import ImportStage
from models.workspace.legacy_imports.stages import Held
from runtime.configuration.sections import ProviderSettings
from runtime.configuration.settings import Settings
from runtime.database import Database, UnitOfWork
from runtime.errors import ConflictError
from runtime.object_store import ObjectStore
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.contract.furnished import furnish
from tests.support.bundles import exported
from tests.support.client import Client, Contract
from tests.support.document import DOCUMENT
from tests.support.engine import KEYS, Engine
from tests.support.furnished_fully import furnish_fully
from tests.support.legacy_import_stories import begin, until
from tests.support.postgres import migrated_database
from tests.support.spaces import MASTER_SECRET, make_space


async def everything(engine: Engine) -> str:
    """The execution that imports a workspace with rows of every kind, stage after stage.

    The last stage fails once all rows are there, so that no other execution of the workspace
    follows, whose history would be recorded in its place. People and their rows are left out: the
    target does not have them.
    """
    original = stages.end_stage

    async def fail(work: UnitOfWork, held: Held, filled_stages: Collection[str]) -> ImportStage:
        if held.stage == ImportStage.AUTOMATIONS:
            raise ConflictError("Not today.")
        return await original(work, held, filled_stages)

    with patch("models.workspace.legacy_imports.stages.end_stage", fail):
        run_id = await begin(engine, await _bundle())
        (entry,) = (await until(engine, run_id, "failed")).workspaces
    assert entry.counts.keys() >= {one.name for one in KINDS if not one.of_members} - OF_PEOPLE
    return WorkflowKind.LEGACY_IMPORT.workflow_id(run_id, str(entry.id))


OF_PEOPLE = {"time_entry", "item_grant"}
"""Kinds whose rows belong to people, and are left out with them."""


async def _bundle() -> bytes:
    """The bundle of such a workspace, made where nothing is executed."""
    with migrated_database("furnished") as url, tempfile.TemporaryDirectory() as directory:
        issuer = ensure_issuer(Path(directory))
        settings = Settings(
            database_url=url,
            secret_key=MASTER_SECRET,
            oidc_issuer=issuer.issuer,
            oidc_audience=issuer.audience,
            oidc_jwks=str(issuer.jwks_path),
            object_store=Path(directory).as_uri(),
            outbound_allow=("127.0.0.0/8",),
            public_url="https://platform.test",
            providers={"github": ProviderSettings.model_validate({"clientId": "platform"})},
        )
        database = Database(url)
        app = create_app(settings, database=database, background=())
        space = await make_space(database, KEYS)
        async with (
            app.router.lifespan_context(app),
            Client(app, Contract(DOCUMENT), space.token) as client,
        ):
            await furnish_fully(await furnish(space, client))
        content = await exported(space, ObjectStore(settings.object_store), 5_000)
        await database.close()
        return content
