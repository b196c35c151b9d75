"""What a check says to people and to programs."""
