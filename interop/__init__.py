"""Real peers of other implementations, and what runs them."""
