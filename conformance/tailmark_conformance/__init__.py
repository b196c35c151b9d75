"""Whether another does it: scenarios, explorers, audits of recorded sessions, reports, the command line."""
