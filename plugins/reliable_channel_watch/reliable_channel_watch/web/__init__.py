"""The view as a web page, served to this machine."""
