"""The providers a workspace can connect to, and connections on the wire.

The config of a connection is shown to everyone who sees it. Its credentials go in and never come
out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from models.core.base import (
    EXAMPLE_ID,
    Id,
    Input,
    InputId,
    JsonObject,
    Label,
    Moment,
    Shape,
    example,
)
from models.core.http_requests import CallableUrl, HeaderName
from models.core.pagination import Listed
from models.core.problems import refused_for
from models.sources.external_resources.rules.resources import Capability
from runtime.outbound_policy import host_name_problem, host_problem

_Username = Annotated[str, Field(max_length=256, pattern=r"^[^:\x00-\x1f]+$")]
_ExternalId = Annotated[str, Field(min_length=1, max_length=1_000)]


class DemoConnection(Input):
    """Resources in memory, to try integrations with.

    Another `edition` changes their content. Those in `vanished` are deleted, those in `denied` are
    not accessible. `generated` is the number of files in a separate folder.
    """

    model_config = example({"edition": 1})

    edition: Annotated[int, Field(ge=1, le=1_000)] = 1
    vanished: Annotated[list[_ExternalId], Field(max_length=100, default_factory=list)]
    denied: Annotated[list[_ExternalId], Field(max_length=100, default_factory=list)]
    generated: Annotated[int, Field(ge=0, le=100_000)] = 0


class HttpConnection(Input):
    """A server that is called by URLs below `baseUrl`; nothing is sent to another origin."""

    model_config = example({"baseUrl": "https://api.example.com/v2", "auth": "bearer"})

    base_url: CallableUrl
    auth: Literal["none", "bearer", "basic", "header"] = "bearer"
    header_name: HeaderName | None = None
    username: _Username | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.auth == "header") is (self.header_name is None):
            raise ValueError("headerName is required with the auth header, and only there")
        if (self.auth == "basic") is (self.username is None):
            raise ValueError("username is required with the auth basic, and only there")
        return self


_Host = Annotated[
    str,
    Field(min_length=1, max_length=254, pattern=r"^[A-Za-z0-9._:-]+$"),
    refused_for(host_name_problem),
]
_Port = Annotated[int, Field(ge=1, le=65_535)]
_SqlName = Annotated[str, Field(min_length=1, max_length=128)]


class _Server(Input):
    """A server that is called by its host and port."""

    host: _Host
    port: _Port

    @model_validator(mode="after")
    def _public(self) -> Self:
        problem = host_problem(self.host, self.port)
        if problem is not None:
            raise ValueError(problem)
        return self


class _DatabaseServer(_Server):
    """The address of a database; `tls` says what is asked of the server's certificate."""

    database: _SqlName
    user: _SqlName
    tls: Literal["off", "required", "verified"] = "verified"


class PostgresqlConnection(_DatabaseServer):
    """A PostgreSQL database; `tls` says what is asked of the server's certificate."""

    model_config = example({"host": "db.example.com", "database": "shop", "user": "reader"})

    port: _Port = 5432


class MysqlConnection(_DatabaseServer):
    """A MySQL or MariaDB database; `tls` says what is asked of the server's certificate."""

    model_config = example({"host": "db.example.com", "database": "shop", "user": "reader"})

    port: _Port = 3306


class SqliteConnection(Input):
    """A SQLite database in a file of the workspace."""

    model_config = example({"fileId": EXAMPLE_ID})

    file_id: InputId


class WebdavConnection(Input):
    """A WebDAV server, such as Nextcloud; what is below `baseUrl` is read."""

    model_config = example(
        {"baseUrl": "https://cloud.example.com/remote.php/dav/files/ann/", "username": "ann"}
    )

    base_url: CallableUrl
    auth: Literal["none", "bearer", "basic"] = "basic"
    username: _Username | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.auth == "basic") is (self.username is None):
            raise ValueError("username is required with the auth basic, and only there")
        return self


class S3Connection(Input):
    """A bucket of Amazon S3, or of any server at `endpoint` that speaks its protocol.

    Only what is below `prefix` is read.
    """

    model_config = example({"bucket": "reports", "region": "eu-central-1"})

    bucket: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")]
    region: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")] = "us-east-1"
    endpoint: CallableUrl | None = None
    prefix: Annotated[str, Field(max_length=1_000, pattern=r"^([^\x00-\x1f/][^\x00-\x1f]*/)?$")] = (
        ""
    )


class SftpConnection(_Server):
    """A directory of an SSH server. `hostKey` is the server's, as `ssh-keyscan` prints it."""

    model_config = example(
        {"host": "files.example.com", "username": "ann", "hostKey": "ssh-ed25519 AAAA"}
    )

    port: _Port = 22
    username: _Username
    auth: Literal["password", "key"] = "password"
    host_key: Annotated[str, Field(max_length=4_096, pattern=r"^[a-z0-9@.-]+ [A-Za-z0-9+/=]+$")]
    directory: Annotated[str, Field(min_length=1, max_length=1_000, pattern=r"^[^\x00]+$")] = "."


class GithubConnection(Input):
    """An account of GitHub.

    The token is a personal access token that may read contents and issues.
    """

    model_config = example({})


class NotionConnection(Input):
    """A workspace of Notion.

    The token is the secret of an integration that the pages are shared with.
    """

    model_config = example({})


class AirtableConnection(Input):
    """An account of Airtable.

    The token is a personal access token with the scopes `data.records:read` and
    `schema.bases:read`.
    """

    model_config = example({})


class GoogleDriveConnection(Input):
    """An account of Google. A token that is given here lasts an hour: sign in instead."""

    model_config = example({})


MAX_CREDENTIAL = 8_192
"""Characters of a credential."""


class ProviderName(StrEnum):
    DEMO = "demo"
    HTTP = "http"
    POSTGRESQL = "postgresql"
    MYSQL = "mysql"
    SQLITE = "sqlite"
    WEBDAV = "webdav"
    S3 = "s3"
    SFTP = "sftp"
    GITHUB = "github"
    NOTION = "notion"
    AIRTABLE = "airtable"
    GOOGLE_DRIVE = "google_drive"


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider. `credentials` are the names of what it signs in with, each of them needed.

    One with `capabilities` has an adapter (`activities.providers.adapters`).
    """

    label: str
    description: str
    config: type[Input]
    credentials: tuple[str, ...] = ()
    capabilities: tuple[Capability, ...] = ()
    unlisted: frozenset[str] = frozenset()
    """The keys of the config that only the API has: no one sets them to connect."""


_FILES = (Capability.BROWSE, Capability.READ, Capability.MOUNT, Capability.IMPORT)

PROVIDERS: Mapping[ProviderName, Provider] = MappingProxyType(
    {
        ProviderName.DEMO: Provider(
            "Demo",
            "Sample resources for trying out integrations.",
            DemoConnection,
            capabilities=tuple(Capability),
            unlisted=frozenset({"edition", "vanished", "denied", "generated"}),
        ),
        ProviderName.HTTP: Provider(
            "HTTP",
            "A server called with a token, a password or a custom header.",
            HttpConnection,
            ("secret",),
            (*_FILES, Capability.SEARCH, Capability.IMPORT_FORM, Capability.WATCH),
        ),
        ProviderName.POSTGRESQL: Provider(
            "PostgreSQL",
            "A database whose queries fill workspace databases.",
            PostgresqlConnection,
            ("password",),
        ),
        ProviderName.MYSQL: Provider(
            "MySQL",
            "A MySQL or MariaDB database whose queries fill workspace databases.",
            MysqlConnection,
            ("password",),
        ),
        ProviderName.SQLITE: Provider(
            "SQLite",
            "A database file of the workspace whose queries fill workspace databases.",
            SqliteConnection,
        ),
        ProviderName.WEBDAV: Provider(
            "WebDAV", "Folders and files of a WebDAV server.", WebdavConnection, ("secret",), _FILES
        ),
        ProviderName.S3: Provider(
            "S3",
            "Objects of a bucket, by the folders that their keys name.",
            S3Connection,
            ("accessKeyId", "secretAccessKey"),
            (*_FILES, Capability.WATCH),
        ),
        ProviderName.SFTP: Provider(
            "SFTP",
            "Folders and files of an SSH server; the secret is a password or a private key.",
            SftpConnection,
            ("secret",),
            _FILES,
        ),
        ProviderName.GITHUB: Provider(
            "GitHub",
            "Repositories, their files and issues.",
            GithubConnection,
            ("token",),
            (*_FILES, Capability.SEARCH, Capability.WATCH),
        ),
        ProviderName.NOTION: Provider(
            "Notion",
            "Pages as Markdown, and databases as rows.",
            NotionConnection,
            ("token",),
            (*_FILES, Capability.SEARCH),
        ),
        ProviderName.AIRTABLE: Provider(
            "Airtable", "Bases, and their tables as rows.", AirtableConnection, ("token",), _FILES
        ),
        ProviderName.GOOGLE_DRIVE: Provider(
            "Google Drive",
            "Folders, files, documents, sheets and forms.",
            GoogleDriveConnection,
            ("token",),
            (*_FILES, Capability.SEARCH, Capability.IMPORT_FORM, Capability.WATCH),
        ),
    }
)

SQL_PROVIDERS = frozenset({ProviderName.POSTGRESQL, ProviderName.MYSQL, ProviderName.SQLITE})
"""The providers that answer SQL queries."""


_Credential = Annotated[str, Field(min_length=1, max_length=MAX_CREDENTIAL)]
Credentials = Annotated[dict[str, _Credential], Field(max_length=10, default_factory=dict)]


class ProviderDetail(Shape):
    """A provider that can be connected to; `credentials` are the names of what it needs.

    `enabled` says whether its `feature` is on in the workspace.
    """

    provider: ProviderName
    label: str
    description: str
    credentials: list[str]
    capabilities: list[Capability]
    feature: str
    enabled: bool


class ProviderList(Listed):
    providers: list[ProviderDetail]


class SwitchProvider(Input):
    """Body of switch provider."""

    model_config = example({"enabled": False})

    enabled: bool


class CreateConnection(Input):
    """Body of create connection; `credentials` are stored encrypted and never returned.

    Without `shared` only who makes it sees and names it.
    """

    provider: Annotated[ProviderName, Field(strict=False)]
    label: Label
    config: Annotated[JsonObject, Field(default_factory=dict)]
    credentials: Credentials
    shared: bool = False


class UpdateConnection(Input):
    """Body of update connection; `config` and `credentials` are replaced as a whole.

    A new config needs the credentials again, so that they are not sent to another server.
    """

    label: Annotated[Label, Field(default="")]
    config: Annotated[JsonObject, Field(default_factory=dict)]
    credentials: Credentials
    shared: bool = False


class ConnectionDetail(Shape):
    id: Id
    workspace_id: Id
    provider: ProviderName
    label: str
    config: JsonObject
    shared: bool
    created_by_user_id: Id
    created_at: Moment
    updated_at: Moment


class ConnectionList(Listed):
    connections: list[ConnectionDetail]
