"""The connection to Temporal, configured as Temporal's own tools are: by TEMPORAL_* variables."""

import asyncio
import ipaddress
import time
from typing import Any

from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig
from temporalio.service import GrpcCompression

from runtime.payload_converter import data_converter
from runtime.settings import TemporalSettings
from runtime.tracing import tracer

_FIRST_DELAY = 0.2
_LONGEST_DELAY = 2.0


class TemporalUnreachableError(ConnectionError):
    """Nothing answers at the Temporal address."""

    retryable = True

    def __init__(self, address: str) -> None:
        super().__init__(
            f"Temporal does not answer at {address}: check TEMPORAL_ADDRESS, and that it is up."
        )


async def connect(
    settings: TemporalSettings,
    *,
    lazy: bool = False,
    seconds: float = 60,
    metrics_address: str | None = None,
) -> Client:
    """A client for this process and event loop.

    Address, namespace, TLS and API key come from TEMPORAL_* variables, else from the profile they
    name. A lazy client connects with its first call; otherwise a server that is still starting is
    waited for. Raises TemporalUnreachableError after `seconds`.

    Where traces are made, the client and its workers take part. With a `metrics_address` the SDK
    serves its metrics there.
    """
    options = {**connect_options(settings), **_observed(metrics_address)}
    deadline = time.monotonic() + seconds
    delay = _FIRST_DELAY
    while True:
        try:
            return await Client.connect(**options, lazy=lazy)
        except ValueError:  # no address at all
            raise TemporalUnreachableError(options["target_host"]) from None
        except RuntimeError:
            # The SDK has no narrower class for a server that cannot be reached.
            if time.monotonic() + delay > deadline:
                raise TemporalUnreachableError(options["target_host"]) from None
        await asyncio.sleep(delay)
        delay = min(delay * 2, _LONGEST_DELAY)


def _observed(metrics_address: str | None) -> dict[str, Any]:
    """The arguments by which others see what the client and its workers do."""
    options: dict[str, Any] = {}
    if tracer() is not None:
        from temporalio.contrib.opentelemetry import TracingInterceptor  # noqa: PLC0415  # heavy

        options["interceptors"] = [TracingInterceptor(tracer())]
    if metrics_address is not None:
        metrics = PrometheusConfig(bind_address=metrics_address, durations_as_seconds=True)
        options["runtime"] = Runtime(telemetry=TelemetryConfig(metrics=metrics))
    return options


def connect_options(settings: TemporalSettings) -> dict[str, Any]:
    """The arguments for `Client.connect`: what the settings were given, the profile, defaults."""
    values = {
        "temporal_address": ("target_host", settings.temporal_address),
        "temporal_namespace": ("namespace", settings.temporal_namespace),
    }
    explicit = {
        key: value for name, (key, value) in values.items() if name in settings.model_fields_set
    }
    options: dict[str, Any] = {
        **dict(values.values()),
        **ClientConfig.load_client_connect_config(),
        **explicit,
        "data_converter": data_converter,
    }
    if _is_loopback(options["target_host"]):
        # Compressing what never leaves the machine costs both sides processor time.
        options["grpc_compression"] = GrpcCompression.NONE
    return options


def _is_loopback(address: str) -> bool:
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
