"""What must hold: the vocabulary, the clauses and one predicate per clause.

This package depends on attrs and cattrs alone. It knows no implementation.
"""
