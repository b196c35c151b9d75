"""One way to do what the specification asks: a pure model and a SQLite store."""
