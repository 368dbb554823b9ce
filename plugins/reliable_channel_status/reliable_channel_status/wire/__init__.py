"""Wire formats: keys, envelopes, payloads and their rules. No I/O, no clock."""
