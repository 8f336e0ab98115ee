"""The `workspace` command."""

import typer

from cli.api import api
from cli.demo import demo
from cli.doctor import doctor
from cli.migrate import migrate
from cli.openapi import openapi
from cli.session import session
from cli.up import up
from cli.worker import worker

app = typer.Typer(
    name="workspace",
    help="The workspace platform: everything that takes time is a durable workflow.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (up, api, worker, migrate, doctor, session, openapi, demo):
    app.command()(command)

if __name__ == "__main__":
    app()
