"""Exports of Notion: Markdown and CSV, in a zip or in a directory."""
