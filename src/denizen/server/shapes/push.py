"""The JSON of push subscriptions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from denizen.server.shapes.given import RequestBody
from denizen.shapes.examples import body_example

_KEYS = {
    "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
    "auth": "BTBZMqHH6r4Tts7J_aSIgg",
}


class PushKeys(RequestBody):
    """The keys of a subscription, as the browser writes them."""

    model_config = body_example(**_KEYS)

    p256dh: Annotated[str, Field(max_length=200)]
    auth: Annotated[str, Field(max_length=100)]


class PushSubscribe(RequestBody):
    """A subscription, as `PushSubscription.toJSON()` of a browser gives it."""

    model_config = body_example(endpoint="https://push.example.com/send/f1", keys=_KEYS)

    endpoint: Annotated[str, Field(description="The address at the push service.")]
    keys: PushKeys
