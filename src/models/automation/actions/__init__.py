"""Actions: single pieces of work, kept under a name and run on request."""
