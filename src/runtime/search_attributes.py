"""The search attributes of an execution: what an operator finds it by."""

from collections.abc import Mapping
from typing import Any

from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes

from runtime.families import Family, SearchAttribute


def search_attributes(
    workspace_id: str, request: Mapping[str, Any], family: Family
) -> TypedSearchAttributes:
    """The attributes of an execution that `request` starts; what it does not name is left out."""
    values = {
        SearchAttribute.WORKSPACE_ID: workspace_id,
        SearchAttribute.RESOURCE_ID: request.get("resourceId"),
        SearchAttribute.RUN_KIND: family.value,
        SearchAttribute.RUN_SOURCE: request.get("source"),
    }
    return TypedSearchAttributes(
        [
            SearchAttributePair(SearchAttributeKey.for_keyword(name), value)
            for name, value in values.items()
            if value is not None
        ]
    )
