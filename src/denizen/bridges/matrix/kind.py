"""The settings of a Matrix bridge, and how it is opened."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from denizen.bridges.port import SECRET, Adapter, BridgeKind, BridgeSettings, Means


class MatrixSettings(BridgeSettings):
    """The homeserver, and the tokens of the application service's registration there."""

    homeserver: Annotated[str, Field(pattern=r"^https?://", max_length=2_000)]
    """The address of the homeserver's client API."""
    as_token: Annotated[str, Field(min_length=1, max_length=500), SECRET]
    """The `as_token` of the registration: the bridge shows it to the homeserver."""
    hs_token: Annotated[str, Field(min_length=1, max_length=500), SECRET]
    """The `hs_token` of the registration: the homeserver shows it to the bridge."""
    streaming: bool = False
    """Whether what agents write is shown while they write it, in a message that changes."""


def _open(settings: BridgeSettings, means: Means) -> Adapter:
    from denizen.bridges.matrix.adapter import MatrixAdapter

    assert isinstance(settings, MatrixSettings)
    return MatrixAdapter(settings, means)


MATRIX: Final = BridgeKind("matrix", MatrixSettings, _open)
