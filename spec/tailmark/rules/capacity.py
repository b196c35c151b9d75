"""Predicates of the chapter on capacity."""
