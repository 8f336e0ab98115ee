"""Accepting a bundle."""

from models.content.files.rules import Content
from models.core.access.rules import Principal
from models.core.base import Id
from models.core.lifecycle import commands as lifecycle
from models.core.work_bounds import require_place_of
from models.workspace.legacy_imports.commands.executions import start_execution
from models.workspace.legacy_imports.lifecycle import LEGACY_IMPORTS
from models.workspace.legacy_imports.queries import get_run
from models.workspace.legacy_imports.rules import Mode
from models.workspace.legacy_imports.shapes import CreateLegacyImport, LegacyImport
from models.workspace.legacy_imports.tables import legacy_import_run
from runtime.database import UnitOfWork
from runtime.errors import ValidationError
from runtime.families import Family

OBJECTS = "legacy-imports"
"""The prefix of the keys of bundles that were sent with the request."""


async def create_run(
    work: UnitOfWork, principal: Principal, run_id: Id, body: CreateLegacyImport
) -> LegacyImport:
    """Accept a bundle that is in the object store. Raises ValidationError for `mode` apply."""
    if body.mode == Mode.APPLY:
        raise ValidationError.at("mode", "A run is a dry run until it is approved and started.")
    return await _accept(
        work, principal, run_id, body.bundle_object_key, body.bundle_checksum, uploaded=False
    )


async def create_uploaded_run(
    work: UnitOfWork, principal: Principal, run_id: Id, upload: Content
) -> LegacyImport:
    """Accept a bundle that was sent with the request. Raises ValidationError for an empty one."""
    if not upload.byte_size:
        raise ValidationError.at("", "The body is empty; send a bundle, or name one in JSON.")
    checksum = upload.sha256.hex()
    return await _accept(work, principal, run_id, upload.object_key, checksum, uploaded=True)


async def _accept(
    work: UnitOfWork, principal: Principal, run_id: Id, key: str, checksum: str, *, uploaded: bool
) -> LegacyImport:
    row = {
        "id": run_id,
        "bundle_object_key": key,
        "bundle_checksum": checksum,
        "uploaded": uploaded,
        "mode": Mode.DRY_RUN.value,
        "created_by_user_id": principal.user_id,
        "updated_at": work.now,
    }
    if await lifecycle.accept(work, LEGACY_IMPORTS, row):
        own = legacy_import_run.c.created_by_user_id == principal.user_id
        await require_place_of(work, principal.user_id, LEGACY_IMPORTS, Family.LEGACY_IMPORT, own)
        await start_execution(work, run_id)
    return await get_run(work, run_id)
