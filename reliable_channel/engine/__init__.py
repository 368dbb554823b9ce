"""One participant whole, sans-I/O: everything between `send` and the transport, and back."""
