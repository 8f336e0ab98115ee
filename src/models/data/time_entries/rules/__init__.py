"""Time entries, and how their times follow from each other. Pure."""
