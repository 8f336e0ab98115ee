"""Pure rules of automations, in four packages; none of them does I/O.

`language` is what configs say about data: bindings, templates, paths. `graph` is the shape of an
automation and its compiler. `planner` decides which nodes of a run are next. `triggers` is what
starts an automation.
"""
