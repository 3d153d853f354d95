"""Two locks held as one."""
