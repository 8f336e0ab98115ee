"""The label, ids and fields of a copy of a database. Pure."""

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from models.core.base import Id, JsonObject
from models.data.fields.rules.fields import FieldSpec, FieldSpecs
from models.data.formulas.rules import FieldRef, dependents

LONGEST_LABEL = 200

WAIT_SECONDS = 600
"""The time a request waits for a copy (interface.md#idempotency)."""

_BY_WAY_OF = "relationFieldKey"
_NUMBERED = re.compile(r"(?P<stem>.*) copy(?: [0-9]+)?", re.DOTALL)


def copied_id(copy_id: Id, source_id: Id) -> Id:
    """The id of the copy of what has `source_id`; `Copy.id_of` computes the same in SQL.

    It keeps the timestamp of the source's id, so that copies sort by id as their sources do: rows
    made together, and the two fields of a relation.
    """
    rest = hashlib.md5((copy_id.hex + source_id.hex).encode(), usedforsecurity=False).hexdigest()
    return UUID(f"{source_id.hex[:16]}8{rest[:15]}")


def copy_label(label: str, labels: Collection[str]) -> str:
    """`<label> copy`, or `<label> copy 2`, … if it is taken; a copy's copy has the same stem."""
    numbered = _NUMBERED.fullmatch(label)
    stem = label if numbered is None else numbered["stem"]
    number = 1
    while True:
        suffix = " copy" if number == 1 else f" copy {number}"
        name = stem[: LONGEST_LABEL - len(suffix)] + suffix
        if name not in labels:
            return name
        number += 1


def digest(fields: FieldSpecs) -> str:
    """A digest of what must not change while records are copied: keys, kinds and settings."""
    typing = sorted(
        (key, str(spec.id), spec.kind.value, spec.settings) for key, spec in fields.items()
    )
    return hashlib.sha256(json.dumps(typing, sort_keys=True).encode()).hexdigest()


def copied_field(spec: FieldSpec, source_id: Id, copy_id: Id) -> FieldSpec:
    """The copy of a field; a relation of the source to itself becomes one of the copy to itself.

    Queries request a new side index for it.
    """
    own = replace(spec, id=copied_id(copy_id, spec.id), index_id=None, index_ready=False)
    if not spec.relation:
        return own
    if spec.target_id == source_id:
        inverse_id = copied_id(copy_id, spec.inverse_id)
        settings = {**spec.settings, "databaseId": str(copy_id)}
    else:
        inverse_id = inverse_id_of(own.id)
        settings = spec.settings
    return replace(own, settings={**settings, "inverseFieldId": str(inverse_id)})


def inverse_id_of(relation_id: Id) -> Id:
    """The id of the inverse of a copied relation in another database.

    Links are stored under the older of the two fields, the one with the smaller id; the inverse is
    the newer one.
    """
    return UUID(int=relation_id.int + 1)


def outward(fields: FieldSpecs, source_id: Id) -> list[FieldSpec]:
    """The relations that point into other databases, which get the inverses of the copies."""
    return [spec for spec in fields.values() if spec.relation and spec.target_id != source_id]


def left_out(fields: FieldSpecs, source_id: Id, closed_ids: Collection[Id]) -> set[str]:
    """The fields that a copy does not get: relations into closed databases, and what they feed."""
    keys = {key for key, spec in fields.items() if spec.relation and spec.target_id in closed_ids}
    waiting = list(keys)
    while waiting:
        key = waiting.pop()
        fed = {ref.key for ref in dependents({source_id: fields}, FieldRef(source_id, key))}
        fed |= {name for name, spec in fields.items() if spec.settings.get(_BY_WAY_OF) == key}
        waiting += fed - keys
        keys |= fed
    return keys


def copied_inverse(
    inverse: FieldSpec, relation: FieldSpec, copy_id: Id, label: str, key: str
) -> FieldSpec:
    """The inverse of a copied relation in another database, labelled as the copy."""
    settings = {
        **inverse.settings,
        "databaseId": str(copy_id),
        "inverseFieldId": str(copied_id(copy_id, relation.id)),
    }
    side_id = inverse_id_of(copied_id(copy_id, relation.id))
    return FieldSpec(id=side_id, key=key, label=label, kind=inverse.kind, settings=settings)


def copied_relation_ids(fields: FieldSpecs, source_id: Id, copy_id: Id) -> dict[Id, Id]:
    """The relation fields of a database and their other sides, with the copy of each."""
    copies = {}
    for spec in fields.values():
        if spec.relation:
            copies[spec.id] = copied_id(copy_id, spec.id)
            if spec.target_id != source_id:
                copies[spec.inverse_id] = inverse_id_of(copies[spec.id])
    return copies


def copied_relations(
    relations: JsonObject, inward: Collection[str], copy_id: Id, *, with_records: bool
) -> JsonObject:
    """The links of a template; copied records, if any, replace the records of the source."""
    return {
        key: [str(copied_id(copy_id, Id(target))) for target in targets]
        if key in inward
        else targets
        for key, targets in relations.items()
        if with_records or key not in inward
    }


def copied_layout(
    layout: JsonObject, fields: FieldSpecs, source_id: Id, views: Mapping[Id, Id]
) -> JsonObject:
    """The layout with the copies of the views it names; `views` maps copied views to copies."""
    relation_views: dict[str, Any] = {}
    for key, entry in layout["relationViews"].items():
        view_id = entry.get("defaultViewId")
        inward = key in fields and fields[key].relation and fields[key].target_id == source_id
        if view_id is not None and inward:
            copy = views.get(Id(view_id))
            relation_views[key] = {**entry, "defaultViewId": None if copy is None else str(copy)}
        else:
            relation_views[key] = entry
    return {**layout, "relationViews": relation_views}
