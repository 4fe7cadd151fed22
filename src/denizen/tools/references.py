"""`${NAME}` in a setting refers to a secret: settings may be shown to anyone, the values of secrets to nobody."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from denizen.errors import ToolFailed
from denizen.tools.addresses import is_allowed
from denizen.tools.settings import destination

Secret = Callable[[str], str | None]
"""The value of a secret by its name, or None."""

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def filled(texts: Mapping[str, str], secret: Secret) -> tuple[dict[str, str], tuple[str, ...]]:
    """The texts with secrets filled in, and these secrets, to be removed from whatever comes back.

    Raises `ToolFailed` if there is no such secret.
    """
    used: dict[str, str] = {}

    def value(match: re.Match[str]) -> str:
        name = match[1]
        found = secret(name)
        if found is None:
            raise ToolFailed(f"The secret {name} is not set here. The owner of the agent has to set it.")
        used[name] = found
        return found

    return {key: _REFERENCE.sub(value, text) for key, text in texts.items()}, tuple(used.values())


def for_host(values: Mapping[str, str], hosts: Mapping[str, Sequence[str]], url: str) -> Secret:
    """The secrets for requests to this URL: a secret with allowed `hosts` is sent to no other."""
    host, port = destination(url)

    def secret(name: str) -> str | None:
        if name in hosts and not is_allowed(host, port, hosts[name]):
            raise ToolFailed(
                f"The secret {name} may not be sent to {host}. An owner of the organization can allow it, with its "
                "setting `secret_hosts`."
            )
        return values.get(name)

    return secret
