"""Communities: their rules, their keys, their history, and the node that runs one. No I/O."""
