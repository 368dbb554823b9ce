"""The errors that the harness knows."""


class APIError(Exception):
    """The engine refuses."""


class NotFound(APIError):
    """There is no such container."""
