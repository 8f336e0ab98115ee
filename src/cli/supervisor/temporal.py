"""The embedded Temporal server: the real one, file-backed, with the settings production has."""

import importlib.resources
import json
import os
import shutil
import sqlite3
import sysconfig
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml
from temporalio.service import ConnectConfig, RPCError, ServiceClient

from cli.console import missing_extra
from cli.supervisor.state import LOOPBACK, StateDir
from cli.supervisor.supervisor import Service
from runtime.temporal.families import SearchAttribute

_ONE_PARTITION = (
    "matching.numTaskqueueReadPartitions=1",
    "matching.numTaskqueueWritePartitions=1",
)
"""Partitions spread a task queue over hosts. On one host they only forward tasks to each other."""
_QUIET = (
    # The defaults are those of a cluster, where other hosts change the data that is polled.
    'system.namespaceCacheRefreshInterval="1m"',
    'matching.ephemeralDataUpdateInterval="1m"',
    # Of the server's own workers, which clean up twice a day. Each poll is renewed every minute.
    "worker.ScannerMaxConcurrentActivityTaskPollers=1",
    "worker.ScannerMaxConcurrentWorkflowTaskPollers=2",
    "worker.ParentCloseMaxConcurrentActivityTaskPollers=1",
    "worker.ParentCloseMaxConcurrentWorkflowTaskPollers=2",
)
"""A fifth less processor time while idle."""
_PROBE_TIMEOUT = timedelta(seconds=2)


def temporal_service(state: StateDir, ports: Mapping[str, int]) -> Service:
    """Temporal's development server as a supervised process. Raises StartError."""
    options = {
        "ip": LOOPBACK,
        "port": str(ports["temporal"]),
        "ui-port": str(ports["temporalUi"]),
        "http-port": str(ports["temporalHttp"]),
        "metrics-port": str(ports["temporalMetrics"]),
        "db-filename": str(state.temporal_database),
        "log-level": "warn",
    }
    command = [str(temporal_binary()), "server", "start-dev", "--ui-disable-news-fetch"]
    command += [f"--{name}={value}" for name, value in options.items()]
    # Without these two pragmas the throughput of a file-backed server halves.
    command += ["--sqlite-pragma=journal_mode=WAL", "--sqlite-pragma=synchronous=NORMAL"]
    command += [f"--search-attribute={name.value}=Keyword" for name in SearchAttribute]
    settings = (*dynamic_config(), *_ONE_PARTITION, *_QUIET)
    command += [f"--dynamic-config-value={pair}" for pair in settings]
    return Service(
        name="temporal",
        command=command,
        # Settings of the person's own Temporal clients do not concern this server.
        environment={k: v for k, v in os.environ.items() if not k.startswith("TEMPORAL_")},
        is_ready=temporal_probe(f"{LOOPBACK}:{ports['temporal']}"),
        damage=lambda: _damage(state.temporal_database),
    )


def _damage(path: Path) -> str:
    if not path.exists():
        return ""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
            [result] = database.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        result = str(error)
    if result == "ok":
        return ""
    words = " ".join(result.split())
    return (
        f"{path} is damaged ({words}). Restore a backup, or remove the file and those beside it"
        f" that start with its name. See temporal/RUNBOOK.md for the effect on runs.\n"
    )


def temporal_binary() -> Path:
    """The `temporal` program of the wheel, else the one on PATH. Raises StartError."""
    installed = Path(sysconfig.get_path("scripts")) / "temporal"
    if installed.exists():
        return installed
    if found := shutil.which("temporal"):
        return Path(found)
    raise missing_extra("The embedded Temporal server", "embedded", ", or set TEMPORAL_ADDRESS")


def dynamic_config() -> list[str]:
    """The dynamic configuration as `KEY=JSON` pairs, from the file a cluster mounts."""
    document: dict[str, list[dict[str, Any]]] = yaml.safe_load(_dynamic_config_text())
    return [f"{key}={json.dumps(entries[0]['value'])}" for key, entries in document.items()]


def _dynamic_config_text() -> str:
    packaged = importlib.resources.files("cli") / "dynamicconfig.yaml"
    if packaged.is_file():
        return packaged.read_text(encoding="utf-8")
    source = Path(__file__).parents[3] / "temporal" / "dynamicconfig.yaml"
    return source.read_text(encoding="utf-8")


def temporal_probe(address: str) -> Callable[[], Awaitable[bool]]:
    """A check whether the frontend at `address` is serving; it keeps its connection."""
    clients: list[ServiceClient] = []

    async def is_serving() -> bool:
        if not clients:
            clients.append(
                await ServiceClient.connect(ConnectConfig(target_host=address, lazy=True))
            )
        try:
            return await clients[0].check_health(timeout=_PROBE_TIMEOUT)
        except (RPCError, RuntimeError):
            return False

    return is_serving
