"""The error of a wrong option or name."""


class UsageError(ValueError):
    """Raised for an option or a name that is wrong by itself: the command line ends with exit status 2, not 1."""
