"""Options for reading the file of a data source or of an import, from its config."""

from models.core.base import JsonObject
from models.sources.tabular.rules.formats import Declared
from models.sources.tabular.rules.options import ReadOptions, TableFormat


def read_options(
    config: JsonObject, file_format: TableFormat, charset: str | None = None
) -> ReadOptions:
    """The options for reading a file of this format; the config has passed its model."""
    return ReadOptions(
        format=file_format,
        delimiter=config.get("delimiter", "auto"),
        encoding=config.get("encoding"),
        header_row=config.get("headerRow"),
        sheet_name=config.get("sheetName"),
        range=config.get("range"),
        json_path=config.get("jsonPath"),
        charset=charset,
        declared=Declared(config.get("dateOrder"), config.get("decimalSeparator"), _words(config)),
    )


def _words(config: JsonObject) -> tuple[frozenset[str], frozenset[str]] | None:
    words = config.get("booleanWords")
    if words is None:
        return None
    yes, no = (frozenset(map(str.casefold, words[name])) for name in ("true", "false"))
    return yes, no
