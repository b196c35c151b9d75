"""Scenarios of automatic compactions and of requests."""
