"""Predicates of the chapter on summary."""
