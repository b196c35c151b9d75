"""The pages of the specification, as Markdown made from its texts and types."""
