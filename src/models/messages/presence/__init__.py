"""The users who are connected to each workspace at the moment, through whatever process."""
