"""What each family of jobs does; a family adds its line here."""

from activities.database_copies import DatabaseCopies
from activities.exports import Exports
from activities.field_conversion import FieldConversion
from activities.field_indexes import FieldIndexes
from activities.field_removal import FieldRemoval
from activities.jobs import Chunks
from activities.recomputation import Recomputation
from runtime.families import Family
from runtime.object_store import ObjectStore


def job_families(store: ObjectStore) -> dict[Family, Chunks]:
    """The chunks of every family."""
    return {
        Family.DATABASE_DUPLICATE: DatabaseCopies(),
        Family.EXPORT: Exports(store),
        Family.FIELD_CONVERSION: FieldConversion(),
        Family.FIELD_INDEX: FieldIndexes(),
        Family.RECOMPUTATION: Recomputation(),
        Family.FIELD_REMOVAL: FieldRemoval(),
    }
