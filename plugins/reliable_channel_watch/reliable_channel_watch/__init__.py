"""A view of a reliable channel, live or from journals, as a web page."""
