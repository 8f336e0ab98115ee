"""Where the platform listens, as far as the settings of a process say."""

from pydantic import SecretStr

from runtime.configuration.resources import platform_policy
from runtime.configuration.settings import Settings
from runtime.outbound_policy import Listener


def own(settings: Settings, **changed: object) -> set[Listener]:
    return set(platform_policy(settings.model_copy(update=changed)).own.listeners)


def test_addresses_in_settings_are_the_platforms_own(settings: Settings) -> None:
    assert own(
        settings,
        database_url=SecretStr("postgresql://u:p@db-1,db-2:5433/w?hostaddr=10.0.0.4"),
        database_pooler_url=SecretStr("postgresql://u@pooler:6432/w"),
        temporal_address="temporal:7233",
        temporal_ui_url="http://127.0.0.1:8233/ui",
        worker_metrics_address="0.0.0.0:9464",
        public_url="https://workspace.example.com",
        own_listeners=("api:8000", "[::1]:8001"),
    ) == {
        Listener("db-1", 5432),
        Listener("db-2", 5433),
        Listener("10.0.0.4", 5432),
        Listener("pooler", 6432),
        Listener("temporal", 7233),
        Listener("127.0.0.1", 8233, shared=True),
        Listener("0.0.0.0", 9464),  # noqa: S104  # as an operator writes it
        Listener("workspace.example.com", 443, shared=True),
        Listener("api", 8000),
        Listener("::1", 8001),
    }


def test_a_socket_is_no_place_that_a_call_reaches(settings: Settings) -> None:
    url = SecretStr("postgresql://workspace@/w?host=%2Ftmp%2Fpg&port=5432")
    assert {one.port for one in own(settings, database_url=url, public_url=None)} == {7233}
