"""The settings of an email bridge, and how it is opened."""

from __future__ import annotations

from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from denizen.bridges.port import SECRET, Adapter, BridgeKind, BridgeSettings, Means
from denizen.tools.addresses import is_allowed

WEEK_MINUTES: Final = 7 * 24 * 60


class EmailSettings(BridgeSettings):
    """The mailbox, and the server that sends."""

    address: Annotated[str, Field(pattern=r"^[^@\s<>,\"]+@[^@\s<>,\"]+$", max_length=250)]
    """The address of the mailbox, which mail is sent from."""
    imap: Annotated[str, Field(pattern=r"^imaps?://[^/@\s]+$", max_length=500)]
    """Where mail is read: `imaps://host` (TLS), or `imap://host` (STARTTLS)."""
    smtp: Annotated[str, Field(pattern=r"^smtps?://[^/@\s]+$", max_length=500)]
    """Where mail is sent: `smtps://host` (TLS), or `smtp://host` (STARTTLS)."""
    user: Annotated[str, Field(max_length=250)] = ""
    """The user name at both; the address, if it is empty."""
    password: Annotated[str, Field(max_length=1_000), SECRET] = ""
    """The password, or one for programs. Empty: the bridge signs in with tokens of `token_url`."""
    token_url: Annotated[str, Field(pattern=r"^(https?://.*)?$", max_length=2_000)] = ""
    """Where access tokens are made (OAuth 2.0)."""
    client_id: Annotated[str, Field(max_length=500)] = ""
    """The application that was registered there."""
    client_secret: Annotated[str, Field(max_length=1_000), SECRET] = ""
    """The secret of the application, if it has one."""
    refresh_token: Annotated[str, Field(max_length=8_000), SECRET] = ""
    """What signing in to the mailbox gave; empty: the application itself has access to it."""
    scope: Annotated[str, Field(max_length=1_000)] = ""
    """What the access tokens are for, where it has to be said."""
    auth_server: Annotated[str, Field(max_length=250)] = ""
    """The name with which your mail server begins `Authentication-Results`; nobody else's are believed."""
    senders: tuple[str, ...] = ()
    """Whose mail is read: addresses, or domains as `@example.org`, and only if they are authenticated; empty: all."""
    with_people: bool = False
    """Whether the people of the connected space are in each conversation too, not only its agents."""
    history_minutes: int = Field(WEEK_MINUTES, ge=1, le=1_000_000)

    @model_validator(mode="after")
    def _can_sign_in(self) -> EmailSettings:
        if bool(self.password) == bool(self.token_url):
            raise ValueError("Set either password, or token_url and client_id.")
        if self.token_url and not self.client_id:
            raise ValueError("token_url needs client_id.")
        url = urlsplit(self.token_url)
        if url.scheme == "http" and not is_allowed(url.hostname or "", url.port or 80, self.allow_private):
            raise ValueError("token_url has to begin with https://.")
        return self


def _open(settings: BridgeSettings, means: Means) -> Adapter:
    from denizen.bridges.email.adapter import EmailAdapter

    assert isinstance(settings, EmailSettings)
    return EmailAdapter(settings, means)


EMAIL: Final = BridgeKind("email", EmailSettings, _open, holds_threads=True)
