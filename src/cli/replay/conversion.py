"""The data converter of a replay: the worker's, but failures say all that was raised.

What they say stays in this process, for the developer who replays.
"""

from dataclasses import replace

from temporalio.converter import DefaultFailureConverter

from runtime.payload_converter import data_converter

replay_converter = replace(data_converter, failure_converter_class=DefaultFailureConverter)
