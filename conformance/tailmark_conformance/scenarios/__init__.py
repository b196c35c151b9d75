"""Small scenarios, one a clause: the source of the clauses' examples and counterexamples."""
