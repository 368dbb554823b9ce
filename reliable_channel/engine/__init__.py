"""The engine of one participant, without I/O: everything between `send` and the transport, in both
directions."""
