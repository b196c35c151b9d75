"""Predicates of the chapter on occupancy."""
