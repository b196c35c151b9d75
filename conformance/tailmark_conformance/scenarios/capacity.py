"""Scenarios of the chapter on capacity."""
