"""What can be checked, and how it is reached."""
