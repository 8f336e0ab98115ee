"""The page that finds pages, items, records and runs."""
