"""The REST API of a node, one module a protocol: what is sent, and how both nodes' answers read."""
