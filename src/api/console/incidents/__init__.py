"""Incidents as pages: what fails, since when, who looks at it, and the retry after a fix."""
