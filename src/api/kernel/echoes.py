"""The keys a PATCH may repeat though they cannot be changed: `id` and `kind` of its resource.

A client that sends back what it read names both. Equal to what is stored they change nothing, so
they are no error; anything else in their place is one.
"""

import json
from typing import Any

from api.kernel.operation import Operation
from api.kernel.request import ApiRequest
from api.kernel.responses import Data
from runtime.errors import ValidationError


def take_echoes(operation: Operation, raw: bytes, value: object) -> tuple[bytes, dict[str, Any]]:
    """The body without what it repeats, and that; `value` is the JSON of the body."""
    if not operation.echoes or not isinstance(value, dict):
        return raw, {}
    echoed = {key: value[key] for key in operation.echoes if key in value}
    if not echoed:
        return raw, {}
    rest = {key: given for key, given in value.items() if key not in echoed}
    return json.dumps(rest).encode(), echoed


def check_echoes(
    echoed: dict[str, Any], operation: Operation, request: ApiRequest, result: object
) -> None:
    """Compare what was repeated with the answer, which shows what is stored.

    Raises ValidationError.
    """
    if not echoed:
        return
    assert isinstance(result, Data)
    answer = {
        "id": request.path_params[operation.parameters[-1]],
        "kind": getattr(result.data, "kind", None),
    }
    for key, value in echoed.items():
        given = value.lower() if key == "id" and isinstance(value, str) else value
        if given != answer[key]:
            raise ValidationError.at(key, "It cannot be changed; leave it out.")
