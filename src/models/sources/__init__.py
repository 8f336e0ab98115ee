"""Imports from elsewhere: data sources, and resources that live with other providers."""
