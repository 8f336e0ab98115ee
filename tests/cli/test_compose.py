"""What can be said of the deployment files without a container engine."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.supervisor.temporal import dynamic_config
from runtime.families import SearchAttribute

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
ONE_SHOTS = {"temporal-schema", "temporal-namespace", "migrate"}
PUBLISHED = {
    "api": "127.0.0.1:8000:8000",
    "proxy": "127.0.0.1:8080:8080",
    "temporal-ui": "127.0.0.1:8233:8080",
}


@pytest.mark.parametrize("name", SERVICES)
def test_images_are_pinned(name: str) -> None:
    assert re.fullmatch(r"[\w./-]+:\d+\.\d+(\.\d+)?", SERVICES[name]["image"])


def test_server_and_tools_of_temporal_are_of_one_version() -> None:
    tags = {SERVICES[name]["image"].split(":")[1] for name in ("temporal", "temporal-schema")}
    assert tags == {SERVICES["temporal-namespace"]["image"].split(":")[1]}


def test_only_api_proxy_and_ui_are_published_and_on_loopback() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {name: [port] for name, port in PUBLISHED.items()}
    assert not any("network_mode" in service for service in SERVICES.values())


@pytest.mark.parametrize("name", sorted(SERVICES.keys() - ONE_SHOTS))
def test_services_are_watched_and_restarted(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"
    assert SERVICES[name]["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_waits_for_what_it_needs(name: str) -> None:
    for needed, condition in SERVICES[name].get("depends_on", {}).items():
        expected = "service_completed_successfully" if needed in ONE_SHOTS else "service_healthy"
        assert condition == {"condition": expected}


def test_the_scaled_profile_has_two_apis_behind_a_proxy_and_three_workers() -> None:
    scaled = {name for name, service in SERVICES.items() if service.get("profiles") == ["scaled"]}
    assert scaled == {"api-more", "worker-more", "proxy"}
    assert SERVICES["worker-more"]["deploy"]["replicas"] + 1 == 3
    for name, more in (("api", "api-more"), ("worker", "worker-more")):
        own = {"profiles", "deploy", "ports"}
        assert {k: v for k, v in SERVICES[more].items() if k not in own} == {
            k: v for k, v in SERVICES[name].items() if k not in own
        }
    proxy = COMPOSE["configs"]["proxy"]["content"]
    assert "reverse_proxy api:8000 api-more:8000" in proxy
    listeners = SERVICES["worker"]["environment"]["WORKSPACE_OWN_LISTENERS"].split(",")
    assert {"api:8000", "api-more:8000", "proxy:8080"} <= set(listeners)


def test_secrets_have_no_default() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    for name in ("PASSWORD", "SECRET_KEY"):
        used = re.findall(rf"\$\{{(\w*{name})(:\?)?", text)
        assert used
        assert all(required for _, required in used)


def test_data_are_kept_where_postgresql_18_writes_them() -> None:
    assert "postgres:/var/lib/postgresql" in SERVICES["postgres"]["volumes"]


def test_api_and_worker_see_the_same_objects() -> None:
    for name in ("api", "api-more", "worker", "worker-more"):
        url = SERVICES[name]["environment"]["WORKSPACE_OBJECT_STORE"]
        [(volume, directory)] = [one.split(":") for one in SERVICES[name]["volumes"]]
        assert (volume, f"file://{directory}") == ("objects", url.partition(":-")[2].rstrip("}"))
        assert directory in (ROOT / "Dockerfile").read_text()


def test_both_ways_of_starting_register_the_same_search_attributes() -> None:
    lines = (ROOT / "temporal" / "search-attributes.txt").read_text().splitlines()
    assert lines == [f"{name.value} Keyword" for name in SearchAttribute]


def test_the_dynamic_configuration_becomes_flags() -> None:
    flags = dynamic_config()
    assert "history.transferProcessorMaxPollRPS=5000" in flags
    assert "matching.enableFairness=true" in flags


def test_the_lock_files_name_no_index() -> None:
    for name in ("requirements.lock", "requirements-dev.lock", "requirements-uv.lock"):
        text = (ROOT / name).read_text()
        assert "--hash=sha256:" in text
        assert "://" not in text
        assert "--index" not in text
