"""The connection to Temporal, configured as Temporal's own tools are: by TEMPORAL_* variables."""

import asyncio
import ipaddress
import logging
import time
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import Any

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.runtime import (
    LogForwardingConfig,
    LoggingConfig,
    PrometheusConfig,
    Runtime,
    TelemetryConfig,
)
from temporalio.service import GrpcCompression, RPCError, RPCStatusCode

from runtime.configuration.settings import TemporalSettings
from runtime.observability.tracing import tracer
from runtime.temporal.executions import data_converter

_FIRST_DELAY = 0.2
_LONGEST_DELAY = 2.0
_NOTICE_SECONDS = 10.0
_ANSWER_TIME = timedelta(seconds=10)


class TemporalUnreachableError(ConnectionError):
    """Nothing answers at the Temporal address."""

    retryable = True

    def __init__(self, address: str) -> None:
        super().__init__(f"Can't reach Temporal at {address}. Check TEMPORAL_ADDRESS.")


class UnknownNamespaceError(ConnectionError):
    """Temporal answers, and has no such namespace."""

    retryable = False

    def __init__(self, address: str, namespace: str) -> None:
        super().__init__(
            f"Namespace {namespace} not found at {address}. Check TEMPORAL_NAMESPACE, or"
            f" create it with `temporal operator namespace create --namespace {namespace}`."
        )


async def connect(
    settings: TemporalSettings,
    *,
    lazy: bool = False,
    seconds: float = 60,
    metrics_address: str | None = None,
    on_wait: Callable[[str], None] = lambda _: None,
) -> Client:
    """A client for this process and event loop.

    Address, namespace, TLS and API key come from TEMPORAL_* variables, else from the profile they
    name. A lazy client connects with its first call; otherwise a server that is still starting is
    waited for, and `on_wait` is called with its address now and then. Raises
    TemporalUnreachableError after `seconds`, and UnknownNamespaceError.

    Where traces are made, the client and its workers take part. With a `metrics_address` the SDK
    serves its metrics there.
    """
    options = {**connect_options(settings), **_observed(metrics_address)}
    deadline = time.monotonic() + seconds
    delay, noticed_at = _FIRST_DELAY, float("-inf")
    while True:
        try:
            # A server that takes the connection and is silent keeps the SDK for half a minute.
            async with asyncio.timeout(deadline - time.monotonic()):
                client = await Client.connect(**options, lazy=lazy)
        except (ValueError, TimeoutError):  # no address at all, or no answer
            raise TemporalUnreachableError(options["target_host"]) from None
        except RuntimeError:
            # The SDK has no narrower class for a server that cannot be reached.
            if time.monotonic() + delay > deadline:
                raise TemporalUnreachableError(options["target_host"]) from None
        else:
            if not lazy:
                await _require_namespace(client, options["target_host"])
            return client
        if time.monotonic() > noticed_at + _NOTICE_SECONDS:
            noticed_at = time.monotonic()
            on_wait(options["target_host"])
        await asyncio.sleep(delay)
        delay = min(delay * 2, _LONGEST_DELAY)


async def _require_namespace(client: Client, address: str) -> None:
    """Raise UnknownNamespaceError; one that may not be looked at is left to the first call."""
    request = DescribeNamespaceRequest(namespace=client.namespace)
    try:
        await client.workflow_service.describe_namespace(request, timeout=_ANSWER_TIME)
    except RPCError as error:
        # A key may be denied the description of its own namespace, and work all the same.
        if error.status in {RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT}:
            raise UnknownNamespaceError(address, client.namespace) from None


def _observed(metrics_address: str | None) -> dict[str, Any]:
    """The arguments by which others see what the client and its workers do."""
    options: dict[str, Any] = {"runtime": _runtime(metrics_address)}
    if tracer() is not None:
        from temporalio.contrib.opentelemetry import TracingInterceptor  # noqa: PLC0415  # heavy

        options["interceptors"] = [TracingInterceptor(tracer())]
    return options


@cache
def _runtime(metrics_address: str | None) -> Runtime:
    """The native part of the SDK, whose lines go through our log: by itself it writes text."""
    logging_config = LoggingConfig(
        LoggingConfig.default.filter,
        forwarding=LogForwardingConfig(
            logging.getLogger("temporalio.core"), append_target_to_name=False
        ),
    )
    metrics = None
    if metrics_address is not None:
        metrics = PrometheusConfig(bind_address=metrics_address, durations_as_seconds=True)
    return Runtime(telemetry=TelemetryConfig(logging=logging_config, metrics=metrics))


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
