"""The prefill of a record template (decisions C5): values a record could have, none required."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from models.core.base import Id
from models.data.fields.rules.fields import FieldSpecs
from models.data.records.rules.link.written_relations import read_relations
from models.data.records.rules.write.data import Change, DataCheck, refuse


def read_prefill(
    fields: FieldSpecs, data: Mapping[str, Any], relations: Mapping[str, Any]
) -> tuple[Change, dict[str, list[Id]]]:
    """The values and links a template prefills; what is null or empty is left out.

    Raises `ValidationError` with every problem at `data.<fieldKey>` or `relations.<fieldKey>`.
    """
    optional = {key: replace(spec, required=False) for key, spec in fields.items()}
    change, problems = DataCheck(optional).patch(data)
    links, wrong = read_relations(optional, relations)
    refuse([*problems, *wrong])
    return Change(change.values), {key: ids for key, ids in links.items() if ids}
