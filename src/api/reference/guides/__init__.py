"""Guides to the parts of the platform, with examples: what no shape tells alone."""

from collections.abc import Sequence

from api.reference.guides.databases import DATABASES
from api.reference.guides.errors import ERRORS
from api.reference.guides.experiments import EXPERIMENTS
from api.reference.guides.forms import FORMS
from api.reference.guides.graph import GRAPH
from api.reference.guides.incidents import INCIDENTS
from api.reference.guides.pauses import PAUSES
from api.reference.guides.records import RECORDS
from api.reference.guides.run_operations import RUN_OPERATIONS
from api.reference.guides.runs import RUNS_GUIDE
from api.reference.guides.sharing import SHARING
from api.reference.guides.steps import Guide
from api.reference.guides.time_entries import TIME

GUIDES: Sequence[Guide] = (
    GRAPH,
    RUNS_GUIDE,
    RUN_OPERATIONS,
    INCIDENTS,
    PAUSES,
    DATABASES,
    RECORDS,
    FORMS,
    SHARING,
    TIME,
    EXPERIMENTS,
    ERRORS,
)
"""In the order of the navigation."""
