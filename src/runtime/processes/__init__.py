"""Processes beside the platform, bounded in time and memory."""
