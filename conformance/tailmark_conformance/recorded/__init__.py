"""Recorded sessions of real agents: read, turned into steps, and judged by the same predicates as live ones."""
