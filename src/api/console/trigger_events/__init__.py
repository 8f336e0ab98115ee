"""Pages of the inbox: events that reached automations, and why nothing ran."""
