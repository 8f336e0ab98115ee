"""The config of each kind of data source, and the connections it can use. Pure.

A config names secrets and never contains them: a connection or a secret of the workspace holds
them.
"""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from models.core import http_requests
from models.core.base import EXAMPLE_ID, Input, InputId, JsonObject, Label, example
from models.core.keys import Key
from models.core.schedules.timetables import EARLIEST, Timetable, Timing, cron_problem, parse_cron
from models.core.values import Timezone
from models.data.fields.rules.fields import OPTION_KINDS, STORED_KINDS, FieldKind
from models.data.fields.shapes import MAX_OPTIONS, CreateOption
from models.sources.connections import providers
from models.sources.external_resources.rules.resources import Capability, ProviderResource
from models.sources.tabular.rules.formats import DateOrder, DecimalSeparator
from runtime.errors import ValidationError

# Each text is matched in one way, so that none takes long. Possessive quantifiers would say so, but
# CPython 3.11.2 has a fault in them.
_COMMENT = r"--[^\n]*\n|#[^\n]*\n|/\*(?!M?!)[^*]*\*+(?:[^/*][^*]*\*+)*/"
_READS = re.compile(rf"(?:\s|\(|{_COMMENT})*(?:select|with|values|table)\b", re.IGNORECASE)
_OF_MYSQL = (
    (re.compile(r"/\*M?!"), "Executable comments are not allowed. Remove /*! … */."),
    (
        re.compile(r"(?<![a-z_])into(?![a-z_0-9])", re.IGNORECASE),
        "INTO is not allowed in queries. Pass text with this word in params.",
    ),
    (
        re.compile(r"load_file", re.IGNORECASE),
        "Queries can't read files. Remove LOAD_FILE.",
    ),
)


def _reading_query(text: str) -> str:
    if "\x00" in text or not _READS.match(text):
        raise ValueError("must be one query that reads: SELECT, WITH, VALUES or TABLE")
    return text


class SqlConfig(Input):
    """The rows of one query, run in a transaction that only reads.

    `params` are written as $1, $2 for PostgreSQL, %s for MySQL and ? for SQLite. The user of the
    connection may read tables, but no files of the server and no other server (dblink).
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


MIN_INTERVAL_SECONDS = 60


class DataSourceKind(StrEnum):
    HTTP_JSON = "http_json"
    HTTP_CSV = "http_csv"
    HTTP_XLSX = "http_xlsx"
    FILE = "file"
    SQL = "sql"
    CONNECTION = "connection"


class WriteMode(StrEnum):
    UPSERT = "upsert"
    REPLACE = "replace"
    APPEND = "append"


class RemovedRows(StrEnum):
    """The fate of a record whose row is no longer in the source."""

    KEEP = "keep"
    ARCHIVE = "archive"
    DELETE = "delete"


_STEP = r"""(?:\.\.?(?:\*|[A-Za-z_][\w-]*)|\[(?:\*|-?\d{1,9}|'[^'\\]*'|"[^"\\]*")\])"""
_JSON_PATH = re.compile(rf"\$(?:{_STEP}){{0,32}}")

_REFUSED_STEPS = (
    (re.compile(r"\?|=~"), "Filters are not supported. Import all rows and filter them in a view."),
    (re.compile(r"\s[-+*/]|[-+*/]\s"), "Arithmetic is not supported. Use a formula field."),
    (re.compile(r"\[[^]'\"]*:"), "Slices are not supported. Import all rows with [*]."),
    (re.compile(r"`|\("), "Functions are not supported. Use a formula field."),
)
"""Parts of JSONPath and its extensions that are not read, and what to do in their place."""


def _readable_path(text: str) -> str:
    if not _JSON_PATH.fullmatch(text):
        named = re.sub(r"'[^']*'|\"[^\"]*\"", "", text)
        advice = next((words for step, words in _REFUSED_STEPS if step.search(named)), "")
        rule = "must be a JSONPath of names, indexes and wildcards, at most 32 steps, such as"
        raise ValueError(f"{rule} $.data.orders[*]. {advice}".strip())
    return text


JsonPath = Annotated[str, Field(max_length=256), AfterValidator(_readable_path)]
_Name = Annotated[str, Field(min_length=1, max_length=200)]


class Auth(Input):
    """The way a request says who it comes from."""

    type: Literal["none", "bearer", "basic", "header", "connection"] = "none"
    secret_name: _Name | None = None
    header_name: http_requests.HeaderName | None = None
    connection_id: InputId | None = None

    @model_validator(mode="after")
    def _what_the_type_needs(self) -> Self:
        if self.type in {"bearer", "basic", "header"} and self.secret_name is None:
            raise ValueError(f"the type {self.type} needs secretName")
        if self.type == "header" and self.header_name is None:
            raise ValueError("the type header needs headerName")
        if (self.type == "connection") is (self.connection_id is None):
            raise ValueError("connectionId is required with the type connection, and only there")
        return self


class Pagination(Input):
    """The way to ask for the next page; `cursorPath` is where an answer names it."""

    type: Literal["none", "page", "offset", "cursor", "link_header"] = "none"
    param: _Name | None = None
    cursor_path: JsonPath | None = None
    page_size: Annotated[int, Field(ge=1, le=10_000)] | None = None
    max_pages: Annotated[int, Field(ge=1, le=1_000)] = 1_000

    @model_validator(mode="after")
    def _what_the_type_needs(self) -> Self:
        if self.type in {"page", "offset", "cursor"} and self.param is None:
            raise ValueError(f"the type {self.type} needs param")
        if self.type == "cursor" and self.cursor_path is None:
            raise ValueError("the type cursor needs cursorPath")
        return self


CellRange = Annotated[str, Field(pattern=r"^[A-Z]{1,3}[0-9]{1,7}(:[A-Z]{1,3}[0-9]{1,7})?$")]


class _Http(Input):
    url: http_requests.CallableUrl
    headers: http_requests.Headers = Field(default_factory=dict)
    query: http_requests.QueryParameters = Field(default_factory=dict)
    auth: Auth | None = None


_Word = Annotated[str, Field(min_length=1, max_length=40)]
_Words = Annotated[list[_Word], Field(max_length=50)]


class BooleanWords(Input):
    """The texts that mean yes and no, beside true and false, yes and no, 1 and 0."""

    true: _Words
    false: _Words


class CellOptions(Input):
    """Options for reading texts as dates, numbers, yes and no.

    What is left out is taken from the rows: the date order from dates such as 21/11/2026, the
    decimal separator from numbers such as 2842,61, the words from columns that have no others. A
    date whose order nothing decides is not read.
    """

    date_order: DateOrder | None = None
    decimal_separator: DecimalSeparator | None = None
    boolean_words: BooleanWords | None = None


class TableOptions(CellOptions):
    """Options for reading the cells of a sheet or of delimited text.

    `headerRow` is the row with the column names, counted from 1; 0 means none. Without it, titles
    above the header are skipped. Other options that are left out are taken from the
    rows: the date order from dates such as 21/11/2026, the decimal separator from numbers such as
    2842,61, the words for yes and no from columns that have no others. A date whose order nothing
    decides is not read.
    """

    delimiter: Literal["auto", ",", ";", "\t", "|"] = "auto"
    encoding: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")] | None = None
    header_row: Annotated[int, Field(ge=0, le=1_000)] | None = None
    sheet_name: _Name | None = None
    range: CellRange | None = None


class HttpJsonConfig(_Http, CellOptions):
    """JSON that a server answers: the objects of an array, over several pages if it says how.

    `jsonPath` leads to the array, by default the likeliest array of objects.
    """

    model_config = example(
        {
            "url": "https://api.example.com/orders",
            "auth": {"type": "bearer", "secretName": "shop_api_token"},
            "jsonPath": "$.data.orders",
            "pagination": {"type": "page", "param": "page", "maxPages": 50},
        }
    )

    method: Literal["GET", "POST"] = "GET"
    body: Any = None
    json_path: JsonPath | None = None
    pagination: Pagination | None = None
    format: Literal["json", "ndjson"] = "json"


class HttpTableConfig(_Http, TableOptions):
    """Delimited text or a workbook that a server answers."""

    model_config = example(
        {"url": "https://example.com/prices.csv", "delimiter": ";", "decimalSeparator": ","}
    )


class FileConfig(TableOptions):
    """A file of the workspace."""

    model_config = example({"fileId": EXAMPLE_ID, "format": "xlsx", "sheetName": "Prices"})

    file_id: InputId
    format: Literal["csv", "tsv", "xlsx", "json", "ndjson"]
    json_path: JsonPath | None = None


class ConnectionConfig(CellOptions):
    """A resource of a provider, read through a connection."""

    model_config = example(
        {
            "connectionId": EXAMPLE_ID,
            "resource": {
                "externalType": "file",
                "externalId": "1BxiMVs0",
                "name": "Prices",
                "surfaceKind": "spreadsheet",
                "capabilities": ["read"],
            },
        }
    )

    connection_id: InputId
    resource: ProviderResource


CONFIGS: Mapping[DataSourceKind, type[Input]] = MappingProxyType(
    {
        DataSourceKind.HTTP_JSON: HttpJsonConfig,
        DataSourceKind.HTTP_CSV: HttpTableConfig,
        DataSourceKind.HTTP_XLSX: HttpTableConfig,
        DataSourceKind.FILE: FileConfig,
        DataSourceKind.SQL: SqlConfig,
        DataSourceKind.CONNECTION: ConnectionConfig,
    }
)


def _fillable(kind: FieldKind) -> FieldKind:
    if kind not in STORED_KINDS:
        raise ValueError(f"A column can't fill a field of the kind {kind.value}.")
    return kind


class FieldMapping(Input):
    """The field that a column fills; `sourcePath` is its header, its letter or a JSON path.

    `required`, `options` and `settings` belong to a field that is made for the column, as
    create field takes them; without `options` and `settings` a field of options gets the ones that
    its rows name. A field that is there stays as it is.
    """

    source_path: Annotated[str, Field(min_length=1, max_length=256)]
    field_key: Key
    label: Label
    kind: Annotated[FieldKind, Field(strict=False), AfterValidator(_fillable)]
    required: bool = False
    options: Annotated[list[CreateOption], Field(max_length=MAX_OPTIONS)] | None = None
    settings: JsonObject | None = None

    def to_json(self) -> JsonObject:
        """The mapping as it is stored and answered: absent keys left out."""
        without = set() if self.required else {"required"}
        return self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=without)

    @property
    def grows(self) -> bool:
        """True when rows bring options of a new field into being."""
        if self.kind not in OPTION_KINDS:
            return False
        is_open = self.options is None and self.settings is None
        return is_open or bool((self.settings or {}).get("allowCreate"))

    def new_field(self) -> JsonObject:
        """A field that is made before any row is read, as the body of create field has it."""
        body = self._field()
        if self.grows:
            body["settings"] = {**(self.settings or {}), "allowCreate": True}
        return body

    def filled_field(self, options: Sequence[JsonObject]) -> JsonObject:
        """A field that is made with its rows, and with the options they bring along."""
        body = self._field()
        if self.kind in OPTION_KINDS:
            added = [{"name": one["name"], "key": one["key"]} for one in options]
            body["options"] = [*body.get("options", ()), *added]
        return body

    def _field(self) -> JsonObject:
        given = self.to_json()
        kept = {name: given[name] for name in _OF_FIELD if name in given}
        return {**kept, "key": self.field_key}


_OF_FIELD = ("label", "kind", "required", "options", "settings")


class Schedule(Input):
    """The due times of refreshes: by `cron` in `timezone`, or every `intervalSeconds`.

    It is refreshed in the name of who created the data source. A due time at which a refresh is
    open is passed over; one that the platform was away for is made up for within ten minutes.
    """

    cron: Annotated[str, Field(max_length=256)] | None = None
    interval_seconds: Annotated[int, Field(ge=MIN_INTERVAL_SECONDS, le=366 * 86_400)] | None = None
    timezone: Timezone = "UTC"
    enabled: bool = True

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.cron is None) is (self.interval_seconds is None):
            raise ValueError("needs either cron or intervalSeconds")
        problem = None if self.cron is None else cron_problem(self.cron)
        if problem is not None:
            raise ValueError(problem)
        if self.timing.timetable.next_after(EARLIEST) is None:
            raise ValueError("never matches a date")
        return self

    @property
    def timing(self) -> Timing:
        """The due times of refreshes; an open refresh stands for the due times it meets."""
        cron = None if self.cron is None else parse_cron(self.cron)
        return Timing(
            timetable=Timetable(
                zone=self.timezone, cron=cron, interval_seconds=self.interval_seconds
            )
        )

    def to_json(self) -> JsonObject:
        """The schedule as it is stored and answered: absent keys left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def named_connection(config: JsonObject) -> tuple[str, Any]:
    """The path at which a config may name a connection, and the id it names there, if any."""
    if "connectionId" in config:
        return "config.connectionId", config["connectionId"]
    auth = config.get("auth")
    return "config.auth.connectionId", auth.get("connectionId") if isinstance(auth, dict) else None


def check_use(
    kind: DataSourceKind, config: JsonObject, place: str, connection: providers.ConnectionDetail
) -> None:
    """Raise ValidationError at `place` for a connection that is of no use to the source."""
    provider = providers.PROVIDERS[connection.provider]
    match kind:
        case DataSourceKind.SQL if connection.provider not in providers.SQL_PROVIDERS:
            raise ValidationError.at(place, f"{provider.label} does not support SQL queries.")
        case DataSourceKind.SQL if connection.provider is providers.ProviderName.MYSQL:
            problem = mysql_problem(str(config.get("query")))
            if problem is not None:
                raise ValidationError.at("config.query", problem)
        case DataSourceKind.CONNECTION if Capability.READ not in provider.capabilities:
            raise ValidationError.at(place, f"{provider.label} has no resources to read.")
        case DataSourceKind.HTTP_JSON | DataSourceKind.HTTP_CSV | DataSourceKind.HTTP_XLSX:
            if connection.provider is not providers.ProviderName.HTTP:
                raise ValidationError.at(place, f"{provider.label} can't be used with a URL.")
            if not _reaches(connection.config["baseUrl"], config.get("url")):
                raise ValidationError.at(
                    "config.url", f"The connection only reaches {connection.config['baseUrl']}."
                )


def _reaches(base: str, url: object) -> bool:
    """True when both have one origin, as far as they tell; a worker judges it when it calls."""
    try:
        return isinstance(url, str) and _origin(base) == _origin(url)
    except ValueError:
        return True  # what is wrong with the URL is said of the URL


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def restored_config(config: JsonObject, before: JsonObject | None) -> JsonObject:
    """The config with what was shown hidden, from the one that is stored.

    Raises ValidationError for what is not stored, or was given for another origin: who changes the
    URL must not have it sent there.
    """
    known = (
        before
        if before is not None and _origin_of_config(config) == _origin_of_config(before)
        else {}
    )
    whole: JsonObject = http_requests.restored(config, known)
    for place in http_requests.left_hidden(whole):
        raise ValidationError.at(".".join(map(str, ("config", *place))), http_requests.GIVE_AGAIN)
    return whole


def _origin_of_config(config: JsonObject) -> tuple[str, str]:
    parts = urlsplit(str(config.get("url")))
    return parts.scheme, parts.netloc
