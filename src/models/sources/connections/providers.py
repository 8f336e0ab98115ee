"""The providers a workspace can connect to: what each is told, and what it signs in with.

The config of a connection is shown to everybody who sees it. Its credentials go in and never come
out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from models.core.base import Input
from models.sources.connections.configs import (
    AirtableConnection,
    DemoConnection,
    GithubConnection,
    GoogleDriveConnection,
    HttpConnection,
    MysqlConnection,
    NotionConnection,
    PostgresqlConnection,
    S3Connection,
    SftpConnection,
    SqliteConnection,
    WebdavConnection,
)
from models.sources.external_resources.rules.resources import Capability

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


_FILES = (Capability.BROWSE, Capability.READ, Capability.MOUNT, Capability.IMPORT)

PROVIDERS: Mapping[ProviderName, Provider] = MappingProxyType(
    {
        ProviderName.DEMO: Provider(
            "Demo",
            "Resources in memory to try integrations with; it needs nothing.",
            DemoConnection,
            capabilities=tuple(Capability),
        ),
        ProviderName.HTTP: Provider(
            "HTTP",
            "A server that is called with a token, a password or a header of its own.",
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
