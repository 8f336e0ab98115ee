"""`workspace convert`: makes a bundle of what another product exported."""

import csv
import zipfile
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cli.console import terminal
from cli.convert.bundle_file import Report
from models.sources.tabular.rules.options import SourceProblem


class Product(StrEnum):
    NOTION = "notion"
    AIRTABLE = "airtable"


_UNREADABLE = (
    *(ValueError, LookupError, TypeError, RuntimeError, csv.Error, zipfile.BadZipFile),
    SourceProblem,
)
"""The errors of reading something that is not an export."""


def convert(
    product: Annotated[
        Product,
        typer.Argument(help="notion: Markdown and CSV export. airtable: schema.json and CSVs."),
    ],
    source: Annotated[
        Path, typer.Argument(exists=True, help="Zip file or directory of the export.")
    ],
    bundle: Annotated[Path, typer.Argument(help="Bundle file to write.")],
    name: Annotated[
        str | None, typer.Option(help="Workspace name. Default: that of the source.")
    ] = None,
    timezone: Annotated[
        str | None,
        typer.Option(help="Time zone of times without one, e.g. Europe/Berlin. Default: UTC."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write the report to this Markdown file.")
    ] = None,
) -> None:
    """Convert a Notion or Airtable export to a bundle. Exits with 1 if it cannot be read."""
    from cli.convert.airtable import convert_base
    from cli.convert.bundle_file import BundleFile
    from cli.convert.notion.conversion import convert_export
    from models.data.fields.rules.settings import zone

    if timezone is not None:
        try:
            zone(timezone)
        except ValueError as error:
            raise typer.BadParameter(f"{timezone} {error}.", param_hint="--timezone") from None
    converters = {Product.NOTION: convert_export, Product.AIRTABLE: convert_base}
    losses = Report()
    try:
        with BundleFile(bundle, name or source.stem, f"{product}/1", losses) as file:
            converters[product](source, file, timezone)
    except _UNREADABLE as error:
        bundle.unlink(missing_ok=True)
        terminal().print(f"{source} is not a valid {product} export: {error}", style="red")
        raise typer.Exit(1) from None
    if report is not None:
        report.write_text(f"{losses.text()}\n", encoding="utf-8")
    terminal().print(losses.text())
