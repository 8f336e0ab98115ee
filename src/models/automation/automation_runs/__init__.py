"""Automation runs and the node runs inside them: the read model of a durable workflow."""
