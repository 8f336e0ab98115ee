"""`workspace doctor`: checks the settings, and that what they name can be reached and used."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from cli import doctor_checks
from cli.console import StartError, reported, terminal
from cli.supervisor.state import StateDir, no_platform, read_object
from runtime.configuration.settings import Settings, load_settings

_COLORS = {
    doctor_checks.Status.OK: "green",
    doctor_checks.Status.WARNING: "yellow",
    doctor_checks.Status.FAILURE: "red",
}
_CHECKS: Sequence[Callable[[Settings], Awaitable[doctor_checks.Finding]]] = (
    doctor_checks.check_database,
    doctor_checks.check_pooler,
    doctor_checks.check_schema,
    doctor_checks.check_secret_key,
    doctor_checks.check_object_store,
    doctor_checks.check_disks,
    doctor_checks.check_temporal,
    doctor_checks.check_search_attributes,
    doctor_checks.check_workers,
    doctor_checks.check_identity_provider,
    doctor_checks.check_mail,
)


def doctor(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
    state_dir: Annotated[
        Path, typer.Option(envvar="WORKSPACE_STATE_DIR", help="State directory of the platform.")
    ] = Path(".state"),
) -> None:
    """Check the settings and the services they refer to. Exits with 1 on a failure.

    Settings missing from the environment come from the platform in the state directory.
    """
    with reported():
        settings, base_url = settings_of(state_dir)
        findings = asyncio.run(_examine(settings, base_url, StateDir(state_dir)))
    if as_json:
        typer.echo(json.dumps(_json_of(findings), indent=2))
    else:
        print_findings(findings)
    raise typer.Exit(
        1 if any(one.status is doctor_checks.Status.FAILURE for one in findings) else 0
    )


def settings_of(state_dir: Path) -> tuple[Settings, str | None]:
    """The settings of a platform, and where its API is, if one runs on the state directory.

    Raises StartError when there is none and the environment names none either.
    """
    state = StateDir(state_dir)
    if not state.is_owned():
        if "DATABASE_URL" not in os.environ:
            raise no_platform(state.root, "set DATABASE_URL and the other variables")
        return load_settings(), None
    connection = read_object(state.connection)
    if not connection:
        raise StartError(f"{state.root}: the platform is starting. Wait, or check {state.logs}.")
    return load_settings(**state.running_settings()), str(connection["baseUrl"])


async def _examine(
    settings: Settings, base_url: str | None, state: StateDir
) -> Sequence[doctor_checks.Finding]:
    findings = [_versions(settings)]
    if base_url is not None:
        findings.append(await _platform(base_url, state))
    checks = [
        check
        for check in _CHECKS
        if check is not doctor_checks.check_pooler or settings.database_pooler_url is not None
    ]
    return [*findings, *[await check(settings) for check in checks]]


def _versions(settings: Settings) -> doctor_checks.Finding:
    from cli.deploy.versioning import WorkerVersion

    build = WorkerVersion.of(settings).build
    python = sys.version.split()[0]
    return doctor_checks.Finding("This build", f"workers {build}, Python {python}")


async def _platform(url: str, state: StateDir) -> doctor_checks.Finding:
    import httpx2

    subject = "Platform"
    async with httpx2.AsyncClient(trust_env=False, timeout=5) as client:
        try:
            answer = await client.get(f"{url}/readyz")
        except httpx2.TransportError:
            return doctor_checks.Finding(subject, f"no response at {url}", f"check {state.logs}")
    if answer.is_success:
        return doctor_checks.Finding(subject, f"ready at {url}")
    try:
        reason = str(answer.json()["error"])
    except (ValueError, KeyError, TypeError):
        reason = f"status {answer.status_code}"
    return doctor_checks.Finding(subject, f"not ready at {url}: {reason}", f"check {state.logs}")


def print_findings(findings: Sequence[doctor_checks.Finding]) -> None:
    """Print a line for each check, and below it the fix, where one is needed."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("", "check", "result"):
        table.add_column(column, overflow="fold")
    for one in findings:
        mark = f"[{_COLORS[one.status]}]{one.status}[/]"
        # Below the result: few have a fix, and a column of it would take a third of the width.
        fix = f"\nFix: {one.remedy}" if one.remedy else ""
        table.add_row(mark, one.subject, escape(one.fact + fix))
    terminal().print(table)


def _json_of(findings: Sequence[doctor_checks.Finding]) -> dict[str, Any]:
    return {
        "ok": all(finding.status is not doctor_checks.Status.FAILURE for finding in findings),
        "checks": [
            {
                "subject": finding.subject,
                "status": finding.status.value,
                "found": finding.fact,
                "remedy": finding.remedy,
            }
            for finding in findings
        ],
    }
