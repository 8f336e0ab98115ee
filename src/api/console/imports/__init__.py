"""Pages that bring spreadsheets in, and follow their imports."""
