"""Clients generated from the document build a graph with types, and read it back."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.support.client import Client
from tests.support.document import TEXT
from tests.support.patience import ENOUGH
from tests.support.spaces import Space

pytestmark = pytest.mark.takes(seconds=12)


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory with the package `attrs_client` and the module `pydantic_models`."""
    directory = tmp_path_factory.mktemp("clients")
    document = directory / "openapi.json"
    document.write_text(TEXT)
    options = directory / "options.yaml"
    options.write_text("post_hooks: []\n")
    programs = Path(sys.executable).parent
    commands = [
        [
            *(str(programs / "openapi-python-client"), "generate", "--path", str(document)),
            *("--meta", "none", "--output-path", str(directory / "attrs_client")),
            *("--config", str(options), "--fail-on-warning"),
        ],
        [
            *(str(programs / "datamodel-codegen"), "--input", str(document)),
            *("--input-file-type", "openapi", "--output-model-type", "pydantic_v2.BaseModel"),
            *("--formatters", "builtin", "--output", str(directory / "pydantic_models.py")),
        ],
    ]
    running = [
        subprocess.Popen(
            command, cwd=directory, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        for command in commands
    ]
    for process in running:
        output, _ = process.communicate(timeout=ENOUGH)
        assert process.returncode == 0, output[-5_000:]
    sys.path.insert(0, str(directory))
    yield directory
    sys.path.remove(str(directory))


@pytest.fixture(scope="module")
def attrs_client(generated: Path) -> ModuleType:  # noqa: ARG001  # makes it
    """What openapi-python-client made."""
    return importlib.import_module("attrs_client.models")


@pytest.fixture(scope="module")
def pydantic_models(generated: Path) -> ModuleType:  # noqa: ARG001  # makes it
    """What datamodel-codegen made."""
    return importlib.import_module("pydantic_models")


def graph_of_attrs(m: ModuleType, database_id: str) -> Any:
    """Query records by a filter, and take each of them through a loop."""
    cheap = m.ValueCondition(field="title", op=m.ValueConditionOp.GTE, value="a")
    query = m.BoundRecordQuery(filter_=cheap)
    find = m.QueryRecordsConfig(database_id=UUID(database_id), query=query)
    each = m.ForEachConfig(items=m.NodeBinding(type_="node", value="find.records"), parallelism=2)
    title = m.ItemBinding(type_="item", value="title")
    output = m.TransformConfigOutput.from_dict({"title": title.to_dict()})
    return m.Graph(
        nodes=[
            m.QueryRecordsNode(id="find", kind="query_records", config=find),
            m.ForEachNode(id="each", kind="for_each", config=each),
            m.TransformNode(id="show", kind="transform", config=m.TransformConfig(output=output)),
        ],
        edges=[
            m.GraphEdge(from_="find", to="each", outcome=m.EdgeOutcome.ALWAYS),
            m.GraphEdge(from_="each", to="show", outcome=m.EdgeOutcome.ITEM),
        ],
    )


def graph_of_pydantic(m: ModuleType, database_id: str) -> Any:
    """The same graph."""
    cheap = m.ValueCondition(field="title", op="gte", value="a")
    query = m.BoundRecordQuery(filter=m.BoundFilter(m.BoundCondition(cheap)))
    find = m.QueryRecordsConfig(databaseId=database_id, query=query)
    items = m.Binding(m.NodeBinding(type="node", value="find.records"))
    title = m.ItemBinding(type="item", value="title").model_dump()
    return m.Graph(
        nodes=[
            m.GraphNode(m.QueryRecordsNode(id="find", kind="query_records", config=find)),
            m.GraphNode(
                m.ForEachNode(
                    id="each", kind="for_each", config=m.ForEachConfig(items=items, parallelism=2)
                )
            ),
            m.GraphNode(
                m.TransformNode(
                    id="show", kind="transform", config=m.TransformConfig(output={"title": title})
                )
            ),
        ],
        edges=[
            m.GraphEdge(**{"from": "find", "to": "each"}),
            m.GraphEdge(**{"from": "each", "to": "show", "outcome": "item"}),
        ],
    )


async def made(client: Client, space: Space, database_id: str, graph: Any) -> Any:
    """The automation the API makes of a graph, which has no problem."""
    answer = await client.post(f"{space.path}/automations", json={"label": "Typed", "graph": graph})
    assert answer.status_code == 201, answer.text
    found = answer.json()["data"]
    assert found["referenceIssues"] == []
    assert found["graph"]["nodes"][0]["config"]["databaseId"] == database_id
    return found


@pytest.fixture
async def database_id(client: Client, space: Space) -> str:
    answer = await client.post(f"{space.path}/databases", json={"label": "Cars"})
    found: str = answer.json()["data"]["id"]
    return found


@pytest.mark.long
async def test_openapi_python_client_builds_a_graph_and_reads_it_back(
    attrs_client: ModuleType, client: Client, space: Space, database_id: str
) -> None:
    m = attrs_client
    graph = graph_of_attrs(m, database_id)
    found = await made(client, space, database_id, graph.to_dict())
    detail = m.AutomationDetail.from_dict(found)
    find, each, _ = detail.graph.nodes
    assert isinstance(find, m.QueryRecordsNode)
    assert isinstance(find.config, m.QueryRecordsConfig)
    assert isinstance(each.config, m.ForEachConfig)
    assert each.config.items == m.NodeBinding(type_="node", value="find.records")
    assert isinstance(detail.trigger_config, m.ManualTrigger)
    assert detail.graph.to_dict() == found["graph"]
    assert m.UpdateAutomation(graph=detail.graph).to_dict() == {"graph": found["graph"]}
    missing = await client.get(f"{space.path}/automations/{uuid4()}")
    refusal = m.ApiNotFound.from_dict(missing.json())
    assert (refusal.field_tag, refusal.error, refusal.status) == ("ApiNotFound", "not_found", 404)
    # A change sends what it names and nothing else.
    assert m.UpdateAction(label="x").to_dict() == {"label": "x"}
    assert m.UpdateItem(title="x").to_dict() == {"title": "x"}


@pytest.mark.long
async def test_datamodel_codegen_builds_a_graph_and_reads_it_back(
    pydantic_models: ModuleType, client: Client, space: Space, database_id: str
) -> None:
    m = pydantic_models
    graph = graph_of_pydantic(m, database_id)
    sent = graph.model_dump(mode="json", by_alias=True, exclude_unset=True)
    found = await made(client, space, database_id, sent)
    detail = m.AutomationDetail.model_validate(found)
    find, each, _ = (node.root for node in detail.graph.nodes)
    assert isinstance(find.config, m.QueryRecordsConfig)
    assert isinstance(each.config.items.root, m.NodeBinding)
    assert isinstance(detail.triggerConfig.root, m.ManualTrigger)
    again = m.UpdateAutomation(graph=detail.graph)
    read = again.model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert read == {"graph": found["graph"]}
    missing = await client.get(f"{space.path}/automations/{uuid4()}")
    refusal = m.Error.model_validate(missing.json()).root
    assert isinstance(refusal, m.ApiNotFound)
    with pytest.raises(ValueError, match="_tag"):
        m.ApiNotFound.model_validate({**missing.json(), "_tag": "ApiConflict"})
