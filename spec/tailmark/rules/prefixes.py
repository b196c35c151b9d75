"""Predicates of the chapter on prefixes."""
