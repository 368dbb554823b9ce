"""A view of a reliable channel, live or from journals: in the terminal, and as a web page."""
