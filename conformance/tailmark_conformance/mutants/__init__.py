"""Wrong variants of the reference, each with one fault. The suite has to catch every one."""
