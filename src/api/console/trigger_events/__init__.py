"""Pages of the inbox: what came in for automations, and why nothing ran."""
