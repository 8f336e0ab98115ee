"""What executions of legacy imports do: read bundles, write rows, take them back."""
