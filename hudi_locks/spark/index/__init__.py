"""Which file group holds the rows of a key."""
