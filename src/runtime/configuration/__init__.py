"""Settings of the platform, and where they come from."""
