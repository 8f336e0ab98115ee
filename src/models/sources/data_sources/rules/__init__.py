"""What a data source reads and how its rows are written."""
