"""The planner: which nodes of a run are next, given the plan and what has ended so far.

The workflow of a run and the worker that executes its quick nodes both use it. Equal events give
equal commands, so a workflow replays: standard library only, no clock, no randomness, and every
result is ordered.
"""
