"""What goes over the wire: keys, envelopes, payloads and their rules. No I/O, no clock."""
