"""Automations: a label, a trigger, and a graph of nodes that exists in versions."""
