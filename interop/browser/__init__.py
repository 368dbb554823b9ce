"""Unmodified js-waku in a browser, and a Python program: the example `examples/browser`."""
