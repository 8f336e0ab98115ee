"""Database templates: databases with fields and views that the platform ships."""
