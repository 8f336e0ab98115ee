"""The graph of an automation: its shape, its node kinds and configs, its checks, its compiler.

`compiler.compile_graph` turns a graph and a trigger into a plan, or into the list of everything
that is wrong with them. It is given a `ReferenceCatalog` of what the workspace has, and looks
nothing up itself. Saving, validating, publishing and running an automation compile its graph.
"""
