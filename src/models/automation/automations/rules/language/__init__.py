"""The language of configs: how a node's parameters refer to the data of its run.

A config holds literals, bindings, templates and CEL expressions. The modules here parse and resolve
them, and tell without a run what a config reads. The compiler checks configs with them, and the
activities resolve parameters with them. Actions use the same language for their steps.
"""
