"""What time entries are, and how their times follow from each other. Pure."""
