"""Faults that users of compaction reported in public, each as a sequence and a mutant with that fault."""
