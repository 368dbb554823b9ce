"""The conformance kit: a peer that speaks JSON lines, checked against the specification."""
