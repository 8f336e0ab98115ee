"""The documentation of imports and data sources: a page for each subject."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from models.core.base import EXAMPLE_ID
from models.sources.tabular.rules.columns import MAX_CHOICES, MAX_DIGITS, MIN_ROWS_OF_CHOICES
from models.sources.tabular.rules.options import ErrorKind


class Subject(StrEnum):
    """The subjects of the notes on imports and data sources."""

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
    ErrorKind.FETCH: "The source returned no rows. Check the source and its URL, then try again.",
    ErrorKind.AUTH: "The source denied access. Check the secret or connection.",
    ErrorKind.TIMEOUT: "Timed out. Try again, or import less at a time.",
    ErrorKind.TOO_LARGE: "Too large for one run. Import less at a time.",
    ErrorKind.PARSE: "The source could not be parsed. Check its format, sheet and header row.",
    ErrorKind.MAPPING: "Columns and fields do not match. Change the fields or the mapping.",
    ErrorKind.WRITE: "The database rejected the rows. Fix the error, then try again.",
    ErrorKind.GUARD: "Too many rows would be removed. If that is right, force the refresh.",
    ErrorKind.CANCELLED: "Cancelled manually.",
    ErrorKind.INTERNAL: "Internal error. Try again, or give an operator the workflow ID.",
}
"""The advice for each `errorKind`."""

NOTES: Mapping[Subject, SubjectNote] = {
    Subject.IMPORTS: SubjectNote(
        "A file, a URL or rows of the request are imported as records, all of them or none. Without"
        " `targetDatabaseId` a database is created for them.\n\n"
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
        "The `progress` of a run has its stage, rows and bytes, also after its end."
        " `GET /v1/data-source-runs/{id}/events` streams every change until the end, and the page"
        " at `pageUrl` shows it to people. The rows of a run become visible in the database all at"
        " once.",
        (
            ("`fetch`", "requests the source page by page; a retry continues after the last page"),
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
        " row without any value, or without a required one, a row whose keys are all empty, and one"
        " whose keys a later one has, makes no record and is counted in `skippedRowCount`.\n\n"
        "A preview shows up to 20 such values by column, before anything is imported: with `fields`"
        " or `targetDatabaseId` checked against these fields. After an import"
        " `imports/{id}/rejects` lists them with row, value and reason, as JSON by pages or with"
        " `format=csv` as a file; after a refresh `data-sources/{id}/runs/{runId}/rejects`.",
        (
            ("Kept", "the first 10,000 of a run; the counts are always complete"),
            ("Retention", "7 days; of a data source until its next run has succeeded"),
        ),
        {"type": "cell", "row": 7, "column": "Price", "value": "two", "reason": "Not a number."},
        "Reject",
    ),
    Subject.KEYS: SubjectNote(
        "`keyFields` are the fields that identify a row. A row with the keys of a record updates"
        " that record; any other creates a new one. Of several rows with the same keys the last one"
        " counts, the others are skipped. A row without a value in any of them is skipped, too.\n\n"
        "Without keys a row is identified by all of its values: a changed row creates a new record"
        " and removes the old one.\n\n"
        "Without `fields` a key is what a column suggests: `suggestedKey` of the preview.",
        (),
        {"keyFields": ["code"], "mode": "upsert"},
    ),
    Subject.MODES: SubjectNote(
        "How rows are written: `writeMode` of a data source, `mode` of an import. Unchanged rows"
        " are not written.",
        (
            ("`upsert`", "existing rows are updated, new rows are inserted"),
            ("`replace`", "the same, and records that are not among the rows are removed"),
            ("`append`, of an import `insert`", "every row is a new record"),
        ),
        {"writeMode": "upsert"},
    ),
    Subject.REMOVAL: SubjectNote(
        "`removedRows` says what happens to a record when its row is missing from the source. A run"
        " that would remove more than `removalGuardPercent` of the known rows fails with `guard`"
        " and changes nothing, unless `force` is set. A failed fetch removes nothing. A source that"
        " was read before may be empty: an empty list, only headers, or no bytes mean zero rows.",
        (
            ("`archive`", "the record is archived"),
            ("`delete`", "the record goes to the trash, for 30 days"),
            ("`keep`", "the record stays as it is"),
        ),
        {"removedRows": "archive", "removalGuardPercent": 30},
    ),
    Subject.PAGINATION: SubjectNote(
        "How the next page of an `http_json` source is requested. Each page is kept once received:"
        " a retry continues after the last one.",
        (
            ("`none`", "one request"),
            ("`page`", "`param` counts pages, from 1 or from the number in the URL"),
            ("`offset`", "`param` counts rows, from 0; the next page begins behind the last row"),
            ("`cursor`", "`param` is the value at `cursorPath` of the previous page"),
            ("`link_header`", "the `Link` header of a page names the next one, on the same host"),
            ("The end", "a page without rows, or without a next one"),
            (
                "`pageSize`",
                "behind a page with fewer rows a refused or repeated page is the end, too",
            ),
        ),
        {"type": "cursor", "param": "after", "cursorPath": "$.meta.next"},
        "Pagination",
    ),
    Subject.UNDO: SubjectNote(
        "For seven days `imports/{id}/undo` undoes an import, and `revert` the newest run of a data"
        " source: its records get their previous values. Records that changed since are kept and"
        " counted. A database that an import created goes to the trash.",
        (("On the command line", "`workspace import --undo RUN`"),),
        {"reverted": 120, "kept": 2},
        "Reversal",
    ),
    Subject.ERRORS: SubjectNote(
        "A failed run has changed nothing. `error` describes the error, `errorKind` is its kind."
        " `fetch` and `timeout` are retried three times.",
        tuple((f"`{kind.value}`", says) for kind, says in ERROR_NOTES.items()),
        {
            "status": "failed",
            "errorKind": "parse",
            "error": "The workbook is encrypted. Save it without a password.",
        },
    ),
}
