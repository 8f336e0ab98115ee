"""Relations between the databases of a conversion."""

from dataclasses import dataclass
from uuid import UUID

from cli.convert.bundle_file import BundleFile
from cli.convert.tables import Converted
from models.core.keys import first_free, slug
from models.data.fields.rules.fields import FieldSpec
from models.data.fields.rules.kinds import FieldKind
from runtime.ids import new_id


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a relation: the field of this label shows it in this database."""

    database: Converted
    label: str


def add_relation(bundle: BundleFile, own: Side, inverse: Side) -> UUID:
    """Add the fields of both sides; the id of the first, whose records links begin at."""
    own_id, inverse_id = new_id(), new_id()
    for side, field_id, target, target_id in (
        (own, own_id, inverse, inverse_id),
        (inverse, inverse_id, own, own_id),
    ):
        keys = side.database.keys
        key = first_free(slug(side.label, "field"), keys | {"title"})
        keys.add(key)
        settings = {
            "databaseId": target.database.id,
            "cardinality": "many",
            "symmetric": False,
            "onDelete": "unlink",
            "inverseFieldId": str(target_id),
        }
        spec = FieldSpec(
            id=field_id,
            key=key,
            label=side.label,
            kind=FieldKind.RELATION,
            settings=settings,
            position=len(keys) + 1000,
        )
        bundle.field(side.database.id, spec)
    return own_id
