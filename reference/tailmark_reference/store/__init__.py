"""The durable form: trees of messages in one SQLite file, and every operation on them.

The store computes paths, projections, stability and the commit's conditions in its own SQL. It shares the
vocabulary and the estimator with the pure model, and nothing else.
"""
