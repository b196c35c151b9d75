"""Ways to look for a step that breaks a clause."""
