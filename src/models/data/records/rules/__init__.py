"""What queries and writes of records mean: checked, compiled and planned without a database."""
