"""Scenarios of the chapter on occupancy."""
