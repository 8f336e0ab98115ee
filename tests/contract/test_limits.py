"""The limits that the interface document promises, as numbers beside the constants that hold them.

A test that reads its expectation from the constant cannot fail when the constant changes.
"""

from datetime import timedelta
from importlib import import_module

import pytest

from tests.contract.interface_document import rows, section

MEBIBYTE = 1024 * 1024
LIMITS = [
    ("`limit` default", "30", "models.core.pagination:DEFAULT_LIMIT", 30),
    ("`limit` maximum", "100", "models.core.pagination:MAX_LIMIT", 100),
    ("`limit` maximum", "100", "models.sources.provider_calls:MAX_LIMIT", 100),
    ("Records of a query", "default 50", "models.data.records.shapes:DEFAULT_QUERY_LIMIT", 50),
    ("Records of a query", "maximum 200", "models.data.records.shapes:MAX_QUERY_LIMIT", 200),
    ("Preview sample rows", "maximum 50", "models.sources.data_sources.commands:MAX_ROWS", 50),
    (
        "Realtime ticket lifetime",
        "30 seconds",
        "models.messages.realtime:LIFETIME",
        timedelta(seconds=30),
    ),
    ("Idempotency window", "24 hours", "models.core.idempotency:WINDOW", timedelta(hours=24)),
    ("Idempotency window", "255 characters", "models.core.idempotency:MAX_LENGTH", 255),
    (
        "Payload of a run, output of a node",
        "1 MiB",
        "models.automation.automation_runs.commands:PAYLOAD_LIMIT",
        MEBIBYTE,
    ),
    (
        "Payload of a run, output of a node",
        "1 MiB",
        "models.automation.automation_runs.calls:INPUT_LIMIT",
        MEBIBYTE,
    ),
    (
        "Payload of a run, output of a node",
        "1 MiB",
        "activities.automation_runs.node_execution:OUTPUT_LIMIT",
        MEBIBYTE,
    ),
    ("Expression", "4,000 characters", "models.core.expressions.rules.programs:MAX_LENGTH", 4_000),
    ("Expression", "4,000 characters", "models.data.fields.rules.settings:MAX_EXPRESSION", 4_000),
    ("Filter", "64 conditions", "models.core.filters.grammar:MAX_LEAVES", 64),
    ("Filter", "8 levels", "models.core.filters.grammar:MAX_DEPTH", 8),
    ("Graph", "200 nodes", "models.automation.automations.rules.graph.shapes:MAX_NODES", 200),
    ("Graph", "500 edges", "models.automation.automations.rules.graph.shapes:MAX_EDGES", 500),
    (
        "Graph",
        "20 test payloads",
        "models.automation.automations.rules.graph.shapes:MAX_TEST_PAYLOADS",
        20,
    ),
    (
        "Graph",
        "of 64 KiB",
        "models.automation.automations.rules.graph.shapes:MAX_TEST_PAYLOAD_BYTES",
        64 * 1024,
    ),
    (
        "Graph",
        "loops 5 deep",
        "models.automation.automations.rules.graph.structure:MAX_NESTING",
        5,
    ),
    (
        "Loops",
        "10,000 items",
        "models.automation.automations.rules.graph.configs:MAX_ITEMS",
        10_000,
    ),
    (
        "Loops",
        "parallelism 50",
        "models.automation.automations.rules.graph.configs:MAX_PARALLELISM",
        50,
    ),
    (
        "Loops",
        "1,000 iterations",
        "models.automation.automations.rules.graph.configs:MAX_ITERATIONS",
        1_000,
    ),
    (
        "Run",
        "30 days",
        "models.automation.automations.rules.graph.shapes:MAX_WAIT_SECONDS",
        30 * 24 * 3_600,
    ),
    (
        "Run",
        "a day at most",
        "models.automation.automations.rules.graph.shapes:MAX_SECONDS",
        24 * 3_600,
    ),
    ("Chain of runs", "8", "models.automation.automation_runs.acceptance:MAX_CHAIN", 8),
    ("Batch of records", "500 operations", "models.data.records.shapes:MAX_OPERATIONS", 500),
    ("Database", "500 fields", "models.data.fields.shapes:MAX_FIELDS", 500),
    ("Database", "200 views", "models.data.views.shapes:MAX_VIEWS", 200),
    ("Database", "1,000 options", "models.data.fields.shapes:MAX_OPTIONS", 1_000),
    ("Database", "1,000 links", "models.data.records.rules.links:MAX_LINKS", 1_000),
    ("Database", "1,000 links", "models.data.records.link_writes:MAX_LINKS", 1_000),
    (
        "Spreadsheet",
        "50 MiB",
        "models.sources.tabular.rules.options:MAX_FILE_BYTES",
        50 * MEBIBYTE,
    ),
    ("Spreadsheet", "1,000,000 rows", "models.sources.tabular.rules.options:MAX_ROWS", 1_000_000),
    ("Spreadsheet", "200 columns", "models.sources.tabular.rules.options:MAX_COLUMNS", 200),
    (
        "Spreadsheet",
        "32 KiB of a cell",
        "models.sources.tabular.rules.options:MAX_CELL_BYTES",
        32 * 1024,
    ),
    (
        "Spreadsheet",
        "unzipped 512 MiB",
        "models.sources.tabular.rules.options:MAX_UNZIPPED_BYTES",
        512 * MEBIBYTE,
    ),
    ("Spreadsheet", "100 times", "models.sources.tabular.rules.options:MAX_ZIP_RATIO", 100),
    (
        "Fetch of a data source",
        "100 MiB",
        "activities.sources.requests:MAX_FETCH_BYTES",
        100 * MEBIBYTE,
    ),
    ("Fetch of a data source", "1,000 pages", "activities.sources.fetching:MAX_PAGES", 1_000),
    (
        "Records of an export",
        "1,000,000",
        "models.data.record_exports.rules:MAX_RECORDS",
        1_000_000,
    ),
    ("Home layout", "50 widgets", "models.people.home_layouts:MAX_WIDGETS", 50),
]
VALUES = {row["Limit"]: row["Value"] for row in rows(section("## Limits")) if "Limit" in row}


@pytest.mark.parametrize(("limit", "words", "constant", "number"), LIMITS)
def test_a_limit_is_what_the_document_says(
    limit: str, words: str, constant: str, number: int | timedelta
) -> None:
    module, _, name = constant.partition(":")
    assert words in VALUES[limit]
    assert getattr(import_module(module), name) == number
