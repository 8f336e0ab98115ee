"""Automations: a trigger and a graph of nodes, in numbered versions; their rules and schedules."""
