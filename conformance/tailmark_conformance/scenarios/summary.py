"""Scenarios of the chapter on the summary."""
