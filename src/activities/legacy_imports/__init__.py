"""The work of legacy imports: read bundles, write rows, take them back."""
