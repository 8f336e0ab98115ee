"""Options for reading the file of a data source or of an import, from its config."""

from models.core.base import JsonObject
from models.sources.tabular.rules.formats import Conventions
from models.sources.tabular.rules.options import ReadOptions, TableFormat


def read_options(
    config: JsonObject, file_format: TableFormat, charset: str | None = None
) -> ReadOptions:
    """The options for reading a file of this format; the config has passed its model."""
    return ReadOptions(
        format=file_format,
        delimiter=config.get("delimiter", "auto"),
        encoding=config.get("encoding"),
        header_row=config.get("headerRow", 1),
        sheet_name=config.get("sheetName"),
        range=config.get("range"),
        json_path=config.get("jsonPath"),
        charset=charset,
        conventions=Conventions(
            config.get("dateOrder", "ymd"), config.get("decimalSeparator", ".")
        ),
    )
