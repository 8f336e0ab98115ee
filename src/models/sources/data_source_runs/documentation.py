"""The documentation of how rows come in: a page for each subject."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from models.core.base import EXAMPLE_ID
from models.sources.tabular.rules.columns import MAX_CHOICES, MAX_DIGITS, MIN_ROWS_OF_CHOICES
from models.sources.tabular.rules.problems import ErrorKind


class Subject(StrEnum):
    """The subjects of the notes on rows that come in."""

    IMPORTS = "imports"
    PROGRESS = "progress"
    COLUMNS = "columns"
    REJECTS = "rejects"
    KEYS = "keys"
    MODES = "modes"
    REMOVAL = "removal"
    PAGINATION = "pagination"
    UNDO = "undo"
    ERRORS = "errors"


class SubjectNote(NamedTuple):
    """The content of a page: paragraphs, facts in a line each, an example, the explained shape."""

    says: str
    facts: tuple[tuple[str, str], ...]
    example: Any
    shape: str | None = None


ERROR_NOTES: Mapping[ErrorKind, str] = {
    ErrorKind.FETCH: "The source did not give its rows. Look at it and at its address, then try"
    " again.",
    ErrorKind.AUTH: "The source does not let the platform in. Look at the secret or the connection"
    " that it asks for.",
    ErrorKind.TIMEOUT: "It took too long. Try again, or bring in less at a time.",
    ErrorKind.TOO_LARGE: "It is too much for one run. Bring in less at a time.",
    ErrorKind.PARSE: "The content cannot be read. Look at the file, and at the format, sheet and"
    " header row that were chosen.",
    ErrorKind.MAPPING: "Columns and fields do not go together. Change the fields of the database,"
    " or which columns fill them.",
    ErrorKind.WRITE: "The database refused the rows. Mend what the error says, then try again.",
    ErrorKind.GUARD: "Too many rows would be removed. Look whether they are really gone; if so,"
    " refresh with force.",
    ErrorKind.CANCELLED: "Somebody cancelled it.",
    ErrorKind.INTERNAL: "A fault of the platform. Try again; its operators find it by the workflow"
    " id.",
}
"""The advice for each `errorKind`."""

NOTES: Mapping[Subject, SubjectNote] = {
    Subject.IMPORTS: SubjectNote(
        "A file, a URL or rows of the request become records, all of them or none. Without"
        " `targetDatabaseId` a database is created with them.\n\n"
        "`data-sources/import-spreadsheet` waits for the end, at most 55 seconds, and is then"
        " answered with `in_progress`: repeated with the same `clientMutationId`, it gives the"
        " result. `imports` starts an import and does not wait.\n\n"
        "On the command line: `workspace import FILE --database ID`, or `--new TITLE`.",
        (
            ("Formats", "CSV, TSV, XLSX, XLS, ODS, JSON, NDJSON"),
            ("At most", "50 MiB, 1,000,000 rows, 200 columns"),
        ),
        {"label": "Prices", "kind": "file", "fileId": EXAMPLE_ID, "fields": []},
        "ImportSpreadsheet",
    ),
    Subject.PROGRESS: SubjectNote(
        "A run tells its stage, its rows and its bytes in `progress`, as long as it goes on and"
        " afterwards. `GET /v1/data-source-runs/{id}/events` tells every change until the end, and"
        " the page `pageUrl` shows it to people. Nothing of a run is visible in the database before"
        " all of it is.",
        (
            ("`fetch`", "asks the source, page by page; a repeated attempt goes on after the last"),
            ("`stage`", "reads the rows and converts their cells"),
            ("`apply`", "compares the rows with the records and writes them, in one transaction"),
        ),
        {"stage": "stage", "rows": 25_000, "bytes": 4_194_304},
        "RunProgress",
    ),
    Subject.COLUMNS: SubjectNote(
        "Without `fields` every column fills a field: one of its name that is there, else a new"
        " one. A column suggests a kind when all of its cells agree; everything else is `text`.\n\n"
        "With `fields` the columns that are named fill these fields. `sourcePath` is the header of"
        " a column, its letter, or for JSON its path. `required`, `options` and `settings` are"
        " those of a field that is created.\n\n"
        "What the options of reading leave open is taken from cells that can be read in one way"
        " only, and `proposed` of a preview says what was taken. Where nothing decides, or columns"
        " contradict each other, nothing is guessed: such dates are not read.\n\n"
        "A data source remembers its columns: each keeps its field. JSON leaves empty keys out, so"
        " a key that no object has empties its field. Where another table lacks a column, its field"
        " keeps its values until the column is back; a missing column that `fields` names fails the"
        " run. `columns` of a run names what is new, missing or of another kind.",
        (
            ("Numbers", f"not with leading zeros, nor with more than {MAX_DIGITS} digits: `text`"),
            ("Groups of digits", "`1,234.50`, `10 237`, `12'345`; `1,23,4` is `text`"),
            ("Signs", "`-5`, `5.00-`, `(5.00)`; currencies as in `$5`, `2842.61 EUR`"),
            ("Days", "ISO 8601, `31.1.2026`, `Jan 31, 2026`; `1/2/2026` by `dateOrder`"),
            ("Times", "with the zone behind them, as `(GMT+1)`, `CET` or `+01:00`"),
            ("`dateOrder`", "else from dates that have one reading, such as `21/11/2026`"),
            ("`decimalSeparator`", "else from numbers that have one reading, such as `2842,61`"),
            ("`booleanWords`", "else pairs such as `Y` and `N`, if a column has both and no other"),
            (
                "`headerRow`",
                "from the first with a value, below `sep=;`; else found, also below a title",
            ),
            (
                "`select`",
                f"at most {MAX_CHOICES} different texts in {MIN_ROWS_OF_CHOICES} rows or more",
            ),
        ),
        {"sourcePath": "Unit price", "fieldKey": "price", "label": "Price", "kind": "number"},
        "FieldMapping",
    ),
    Subject.REJECTS: SubjectNote(
        "A value that does not match its field is left blank and counted: in `skippedCells` of an"
        " import, and of a run in `stats.cellsSkipped` and by column in `columns.skippedCells`. A"
        " row without any value, or without a required one, and a row whose key values a later one"
        " has, makes no record and is counted in `skippedRowCount`.\n\n"
        "A preview shows up to 20 such values by column, before anything is imported: with `fields`"
        " or `targetDatabaseId` checked against these fields. After an import"
        " `imports/{id}/rejects` lists them with row, value and reason, as JSON by pages or with"
        " `format=csv` as a file; after a refresh `data-sources/{id}/runs/{runId}/rejects`.",
        (
            ("Kept", "the first 10,000 of a run; the counts are always complete"),
            ("For how long", "7 days; of a data source until its next run has succeeded"),
        ),
        {"type": "cell", "row": 7, "column": "Price", "value": "two", "reason": "Not a number."},
        "Reject",
    ),
    Subject.KEYS: SubjectNote(
        "`keyFields` are the fields that tell rows apart. A row whose keys a record has becomes"
        " that record; any other is a new one. Of several rows with the same keys the last one"
        " counts, the others are skipped.\n\n"
        "Without keys a row is told apart by all of its values: a changed row is a new record, and"
        " the old one is gone.\n\n"
        "Without `fields` a key is what a column suggests: `suggestedKey` of the preview.",
        (),
        {"keyFields": ["code"], "mode": "upsert"},
    ),
    Subject.MODES: SubjectNote(
        "What becomes of the rows: `writeMode` of a data source, `mode` of an import. What has not"
        " changed is not written.",
        (
            ("`upsert`", "rows that are there are updated, others are inserted"),
            ("`replace`", "the same, and records that are not among the rows are removed"),
            ("`append`, of an import `insert`", "every row is a new record"),
        ),
        {"writeMode": "upsert"},
    ),
    Subject.REMOVAL: SubjectNote(
        "`removedRows` says what becomes of the record of a row that the source has no more. A run"
        " that would remove more than `removalGuardPercent` of the known rows fails with `guard`"
        " and changes nothing; `force` lets it. A fetch that fails removes nothing. A source that"
        " was read before may be empty: an empty list, headers alone, or no bytes are no rows.",
        (
            ("`archive`", "the record is archived"),
            ("`delete`", "the record goes to the trash, for 30 days"),
            ("`keep`", "the record stays as it is"),
        ),
        {"removedRows": "archive", "removalGuardPercent": 30},
    ),
    Subject.PAGINATION: SubjectNote(
        "How the next page of an `http_json` source is asked for. Each page is kept when it is"
        " here: a repeated attempt goes on after the last one.",
        (
            ("`none`", "one request"),
            ("`page`", "`param` counts pages, from 1 or from the number in the URL"),
            ("`offset`", "`param` counts rows, from 0"),
            ("`cursor`", "`param` takes what stands at `cursorPath` of the page before"),
            ("`link_header`", "the `Link` header of a page names the next one, on the same host"),
            ("The end", "a page without rows, with fewer than `pageSize`, or without a next one"),
        ),
        {"type": "cursor", "param": "after", "cursorPath": "$.meta.next"},
        "Pagination",
    ),
    Subject.UNDO: SubjectNote(
        "For seven days an import is taken back by `imports/{id}/undo`, and the newest run of a"
        " data source by `revert`: its records become what they were. Records that somebody changed"
        " since are kept and counted. A database that an import created goes to the trash.",
        (("On the command line", "`workspace import --undo RUN`"),),
        {"reverted": 120, "kept": 2},
        "Reversal",
    ),
    Subject.ERRORS: SubjectNote(
        "A run that failed has changed nothing. `error` says what was wrong, `errorKind` of which"
        " kind it is. `fetch` and `timeout` are tried again, three times.",
        tuple((f"`{kind.value}`", says) for kind, says in ERROR_NOTES.items()),
        {
            "status": "failed",
            "errorKind": "parse",
            "error": "The workbook is encrypted. Save it without a password.",
        },
    ),
}
