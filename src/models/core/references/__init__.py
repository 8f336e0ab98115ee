"""References of definitions to fields, options and other things."""
