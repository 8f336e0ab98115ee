"""The config of a source that is a query of a database. Pure."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from models.core.base import EXAMPLE_ID, Input, InputId, example

# Each text is matched in one way, so that none takes long. Possessive quantifiers would say so, but
# CPython 3.11.2 has a fault in them.
_COMMENT = r"--[^\n]*\n|#[^\n]*\n|/\*(?!M?!)[^*]*\*+(?:[^/*][^*]*\*+)*/"
_READS = re.compile(rf"(?:\s|\(|{_COMMENT})*(?:select|with|values|table)\b", re.IGNORECASE)
_OF_MYSQL = (
    (re.compile(r"/\*M?!"), "Comments that are executed are refused: leave /*! … */ out."),
    (
        re.compile(r"(?<![a-z_])into(?![a-z_0-9])", re.IGNORECASE),
        "A query that only reads has no INTO; give a text that holds the word by params.",
    ),
    (
        re.compile(r"load_file", re.IGNORECASE),
        "A query reads tables and no files: leave LOAD_FILE out.",
    ),
)


def _reading_query(text: str) -> str:
    if "\x00" in text or not _READS.match(text):
        raise ValueError("must be one query that reads: SELECT, WITH, VALUES or TABLE")
    return text


class SqlConfig(Input):
    """The rows of one query, run in a transaction that only reads.

    `params` stand in the query as $1, $2 for PostgreSQL, %s for MySQL and ? for SQLite. The user of
    the connection may read tables, no files of the server, and no other server (dblink).
    """

    model_config = example(
        {
            "connectionId": EXAMPLE_ID,
            "query": "SELECT id, name, region FROM customer WHERE region = $1",
            "params": ["north"],
        }
    )

    connection_id: InputId
    query: Annotated[str, Field(min_length=1, max_length=100_000), AfterValidator(_reading_query)]
    params: Annotated[list[str | int | float | bool | None], Field(max_length=100)] = Field(
        default_factory=list
    )


def mysql_problem(query: str) -> str | None:
    """The reason why a query is not sent to MySQL, or None.

    The grammar of MySQL lets a query that reads do more.
    """
    return next((problem for pattern, problem in _OF_MYSQL if pattern.search(query)), None)
