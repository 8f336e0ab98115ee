"""The configs of data sources. Pure."""
