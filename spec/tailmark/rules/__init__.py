"""One predicate per clause, over observed steps. A module is a chapter; ``tree_1`` judges the clause ``TREE-1``."""
