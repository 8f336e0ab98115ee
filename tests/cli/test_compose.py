"""What can be said of the deployment files without a container engine."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.supervisor.servers import dynamic_config, temporal_service
from cli.supervisor.state import StateDir
from runtime.configuration.settings import Settings
from runtime.temporal.workflow_kinds import SearchAttribute

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
ONE_SHOTS = {"temporal-schema", "temporal-namespace", "migrate"}
PUBLISHED = {
    "api": "127.0.0.1:8000:8000",
    "proxy": "127.0.0.1:8080:8080",
    "temporal-ui": "127.0.0.1:8233:8080",
}


PINNED = r"[\w./-]+:(?P<tag>\d+\.\d+[\w.-]*)(@sha256:[0-9a-f]{64})?"
OWN = re.compile(r"workspace-platform:\d+\.\d+\.\d+")


def image_of(service: str) -> re.Match[str]:
    """The image of a service, which a file named .env may replace by one with a digest."""
    found = re.fullmatch(rf"\$\{{(?P<variable>\w+_IMAGE):-{PINNED}\}}", SERVICES[service]["image"])
    assert found is not None, SERVICES[service]["image"]
    return found


@pytest.mark.parametrize("name", SERVICES)
def test_images_are_pinned(name: str) -> None:
    assert OWN.fullmatch(SERVICES[name]["image"]) or image_of(name)


def test_the_base_image_is_pinned_and_can_be_replaced_by_one_with_a_digest() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    [default] = re.findall(r"^ARG PYTHON_IMAGE=(.+)$", dockerfile, re.MULTILINE)
    assert re.fullmatch(PINNED, default)
    assert set(re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)) == {"${PYTHON_IMAGE}"}
    build = SERVICES["api"]["build"]["args"]["PYTHON_IMAGE"]
    assert build == f"${{PYTHON_IMAGE:-{default}}}"


def test_the_documentation_names_every_image_that_can_be_replaced() -> None:
    text = (ROOT / "docs" / "operating.md").read_text()
    others = [name for name in SERVICES if not OWN.fullmatch(SERVICES[name]["image"])]
    named = {image_of(name)["variable"] for name in others}
    assert {name for name in (*named, "PYTHON_IMAGE") if f"`{name}`" not in text} == set()


def test_server_and_tools_of_temporal_are_of_one_version() -> None:
    tags = {image_of(name)["tag"] for name in ("temporal", "temporal-schema", "temporal-namespace")}
    assert len(tags) == 1


FIXED = {
    "DATABASE_URL": "is the PostgreSQL of this file",
    "TEMPORAL_ADDRESS": "is the Temporal of this file",
    "TEMPORAL_NAMESPACE": "is made by this file",
}
"""Settings whose value this file decides."""
NOT_PASSED = {
    "WORKSPACE_STATE_DIR": "nothing is kept there: the object store has a volume of its own",
    "WORKSPACE_PORT": "the command of the API names its port, which the proxy and the check use",
    "TEMPORAL_API_KEY": "the Temporal of this file has none",
    "TEMPORAL_TLS": "the Temporal of this file is on a network of its own",
    "AWS": "stands for the usual variables, which are passed one by one",
}
"""Documented variables that a service does not need."""
PASSED_AS_THEY_ARE = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_REGION",
    "AWS_ENDPOINT_URL",
)


def settings_by_variable() -> set[str]:
    return {
        str(field.validation_alias or f"WORKSPACE_{name.upper()}")
        for name, field in Settings.model_fields.items()
    }


def documented_variables() -> set[str]:
    text = (ROOT / "docs" / "settings.md").read_text()
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`([A-Z_]+[A-Z])", row)}


@pytest.mark.parametrize("service", ["api", "api-more", "worker", "worker-more", "migrate"])
@pytest.mark.parametrize("variable", sorted(settings_by_variable() | documented_variables()))
def test_every_setting_reaches_the_services(service: str, variable: str) -> None:
    environment = SERVICES[service]["environment"]
    if variable in NOT_PASSED:
        assert variable not in environment
    elif variable in FIXED:
        assert environment[variable]
    else:
        assert f"${{{variable}:" in environment[variable]


@pytest.mark.parametrize("service", ["api", "worker"])
def test_nothing_else_reaches_them(service: str) -> None:
    known = settings_by_variable() | {*PASSED_AS_THEY_ARE, "WORKSPACE_HEARTBEAT_FILE"}
    assert set(SERVICES[service]["environment"]) <= known


def test_a_setting_that_is_not_given_has_its_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in settings_by_variable():
        monkeypatch.delenv(variable, raising=False)
    required = {"DATABASE_URL": "postgresql://u@h/d", "WORKSPACE_SECRET_KEY": "s" * 32}
    for name, value in required.items():
        monkeypatch.setenv(name, value)
    plain = Settings()
    for name in settings_by_variable() - required.keys():
        monkeypatch.setenv(name, "")
    assert Settings() == plain


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


def test_the_documentation_has_the_settings_of_the_embedded_temporal(tmp_path: Path) -> None:
    ports = dict.fromkeys(("temporal", "temporalUi", "temporalHttp", "temporalMetrics"), 1)
    command = temporal_service(StateDir(tmp_path), ports).command
    decisive = ("--sqlite-pragma", "--search-attribute", "--dynamic-config-value=")
    # What only spares processor time at rest, or is of a cluster with other hosts, is left out.
    quiet = ("worker.", "Interval")
    wanted = {
        option
        for option in command
        if option.startswith(decisive) and not any(word in option for word in quiet)
    }
    text = (ROOT / "docs" / "operating.md").read_text()
    assert {option for option in wanted if option not in text} == set()


def test_the_lock_files_name_no_index() -> None:
    for name in ("requirements.lock", "requirements-dev.lock", "requirements-uv.lock"):
        text = (ROOT / name).read_text()
        assert "--hash=sha256:" in text
        assert "://" not in text
        assert "--index" not in text
