"""Guides to the parts of the platform, with examples: what no shape tells alone."""

from collections.abc import Sequence

from api.reference.guides.databases import DATABASES, FORMS, RECORDS, TIME
from api.reference.guides.errors import ERRORS
from api.reference.guides.graph import GRAPH
from api.reference.guides.people import EXPERIMENTS, SHARING
from api.reference.guides.runs import INCIDENTS, PAUSES, RUN_OPERATIONS, RUNS_GUIDE
from api.reference.guides.steps import Guide

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
