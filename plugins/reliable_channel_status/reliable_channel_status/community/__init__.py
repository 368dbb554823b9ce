"""Communities: their rules, keys and history, and the node that runs one. No I/O."""
