"""The connections a data source can use, by its kind."""

from urllib.parse import urlsplit

from models.core.base import JsonObject
from models.sources.connections.providers import PROVIDERS, SQL_PROVIDERS, ProviderName
from models.sources.connections.shapes import ConnectionDetail
from models.sources.data_sources.rules.configs import DataSourceKind
from models.sources.data_sources.rules.databases import mysql_problem
from models.sources.external_resources.rules.resources import Capability
from runtime.errors import ValidationError


def check_use(
    kind: DataSourceKind, config: JsonObject, place: str, connection: ConnectionDetail
) -> None:
    """Raise ValidationError at `place` for a connection that is of no use to the source."""
    provider = PROVIDERS[connection.provider]
    match kind:
        case DataSourceKind.SQL if connection.provider not in SQL_PROVIDERS:
            raise ValidationError.at(place, f"{provider.label} answers no SQL queries.")
        case DataSourceKind.SQL if connection.provider is ProviderName.MYSQL:
            problem = mysql_problem(str(config.get("query")))
            if problem is not None:
                raise ValidationError.at("config.query", problem)
        case DataSourceKind.CONNECTION if Capability.READ not in provider.capabilities:
            raise ValidationError.at(place, f"{provider.label} has no resources to read.")
        case DataSourceKind.HTTP_JSON | DataSourceKind.HTTP_CSV | DataSourceKind.HTTP_XLSX:
            if connection.provider is not ProviderName.HTTP:
                raise ValidationError.at(place, f"{provider.label} signs in at no URL.")
            if not _reaches(connection.config["baseUrl"], config.get("url")):
                raise ValidationError.at(
                    "config.url", f"The connection reaches {connection.config['baseUrl']} only."
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
