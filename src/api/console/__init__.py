"""The console: pages for people in a browser, one package for each area (ADR 0083).

They call the same commands and queries as the operations of the API, through the same pipeline.
"""
