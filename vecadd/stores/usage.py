"""What is wrong with a call itself."""


class UsageError(ValueError):
    """An option or a name that the call cannot have: wrong usage, which a command's exit status tells from an error."""
