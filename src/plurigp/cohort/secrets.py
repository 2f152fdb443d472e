"""Connection strings stay out of every message."""

import re

ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]{1,30}://")
HIDDEN = (
    (re.compile(r"([A-Za-z][A-Za-z0-9+.\-]{1,30}://)[^\n]*"), r"\1…"),
    (re.compile(r"(?i)\b(password|passwd|pwd)\s*=[^\n]*"), r"\1=…"),
)


class SecretError(ValueError):
    """About a setting whose value must not be shown."""


def looks_like_address(text: str) -> bool:
    """Whether a text is an address of a server and not a path."""
    return ADDRESS.match(text.strip()) is not None


def without_secrets(text: str) -> str:
    """A message without addresses and passwords, and without what follows them in their line."""
    for pattern, stand_in in HIDDEN:
        text = pattern.sub(stand_in, text)
    return text
