"""Worker deployments: builds of the workers side by side, and which of them takes new work."""
