"""Pure rules of triggers: what a change is, which trigger matches it, when a date is due."""
