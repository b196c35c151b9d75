"""Predicates of the chapter on damage."""
