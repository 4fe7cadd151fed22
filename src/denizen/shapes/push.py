"""Web push: notifications through the push service of a browser."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from denizen.shapes.examples import example
from denizen.shapes.value import Value


class PushOut(Value):
    """Whether browsers can be notified while no tab is open."""

    model_config = example(
        public_key="BEl62iUYgUivxIkv69yViEuiBIa-Ib9-SkvMeAtA3LFgDzkrxZJjSgSnfckjBJuBkr3qBUYIHBQFLXYp5Nksh8U"
    )

    enabled: bool
    public_key: Annotated[
        str | None,
        Field(description="The server's key, for `applicationServerKey`; null if web push is off."),
    ]


class PushSubscriptionOut(Value):
    """A browser in which you are notified."""

    id: str
