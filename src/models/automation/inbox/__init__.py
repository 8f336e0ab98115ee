"""The inbox: what came in for automations, and what each of them made of it."""
