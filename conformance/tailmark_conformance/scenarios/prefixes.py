"""Scenarios of the chapter on prefixes."""
