"""What only a config may name."""

import pytest

from activities.automation_runs.nodes.invocation import check_named
from models.automation.automation_runs.rules import NodeError

ID = "00000000-0000-7000-8000-000000000001"
BINDING = {"type": "trigger", "value": "id"}


@pytest.mark.parametrize(
    ("name", "code"), [("connectionId", "connection_error"), ("endpointId", "endpoint_error")]
)
def test_an_id_from_a_binding_is_refused(name: str, code: str) -> None:
    check_named({name: ID}, {name: ID})
    check_named({name: None}, {name: BINDING})
    with pytest.raises(NodeError, match=f"{name} must be an id, not a binding") as refused:
        check_named({name: ID}, {name: BINDING})
    assert refused.value.failure_code == code
