"""The commands of `workspace`."""

import typer

from cli.api import api
from cli.client.completion import completion
from cli.client.incidents_commands import incidents
from cli.client.profile_commands import profile
from cli.client.runs_commands import runs
from cli.convert.command import convert
from cli.demo.command import demo
from cli.deploy.command import deploy
from cli.doctor.command import doctor
from cli.history import history
from cli.legacy_imports.command import legacy_import
from cli.migrate import migrate
from cli.openapi import bundle_schema, openapi
from cli.quarantine.command import quarantine
from cli.replay.command import replay
from cli.rows.importing import import_file
from cli.rows.refresh import refresh
from cli.secret_keys import rotate_secret
from cli.session import session
from cli.sign_in import sign_in
from cli.up import up
from cli.worker import worker

app = typer.Typer(
    name="workspace",
    help="The workspace platform: everything that takes time is a durable workflow.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (
    up,
    api,
    worker,
    migrate,
    doctor,
    session,
    replay,
    history,
    quarantine,
    refresh,
    openapi,
    demo,
    convert,
):
    app.command()(command)
app.command("sign-in")(sign_in)
app.command("rotate-secret")(rotate_secret)
app.command("import")(import_file)
app.add_typer(legacy_import)
app.add_typer(deploy)
app.add_typer(profile)
app.add_typer(runs)
app.add_typer(incidents)
app.command()(completion)
app.command("bundle-schema")(bundle_schema)
