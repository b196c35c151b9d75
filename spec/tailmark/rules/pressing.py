"""Predicates of the chapter on pressing."""
