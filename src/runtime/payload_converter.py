"""Payloads of Temporal: JSON by pydantic, with type adapters that a process builds once."""

from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import CompositePayloadConverter, DataConverter

from runtime.failure_converter import BriefFailureConverter

_CONVERTERS = tuple(PydanticPayloadConverter().converters.values())


class SharedPayloadConverter(CompositePayloadConverter):
    """The converter of the SDK's pydantic support, whose adapters of types are built once.

    The SDK makes a converter for every workflow it loads. One that began with an empty memory would
    build the adapters of all our contracts again for every run.
    """

    def __init__(self) -> None:
        super().__init__(*_CONVERTERS)


data_converter = DataConverter(
    payload_converter_class=SharedPayloadConverter,
    failure_converter_class=BriefFailureConverter,
)
