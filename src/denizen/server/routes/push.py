"""Web push: the browsers in which people are notified while no tab is open."""

from __future__ import annotations

from fastapi import Request

from denizen.errors import InvalidInput, SecretKeyMissing, SecretUnreadable
from denizen.notifications import subscriptions
from denizen.server.auth import Person
from denizen.server.context import context_of
from denizen.server.router import new_router
from denizen.server.shapes.push import PushSubscribe
from denizen.shapes.push import PushOut, PushSubscriptionOut

router = new_router()


@router.get("/api/push", summary="Get the server's key for web push")
async def get_push(request: Request, caller: Person) -> PushOut:  # noqa: ARG001
    """Browsers need it to subscribe."""
    push = context_of(request).push
    try:
        key = None if push is None else (await push.key()).public
    except (SecretKeyMissing, SecretUnreadable):
        key = None
    return PushOut(enabled=key is not None, public_key=key)


@router.post("/api/push/subscriptions", status_code=201, summary="Get notifications in this browser")
async def subscribe(request: Request, caller: Person, given: PushSubscribe) -> PushSubscriptionOut:
    """You are notified of mentions, of answers you waited for and of questions, until the session or token of this
    request ends. A browser that is sent again keeps its id.
    """
    context = context_of(request)
    if context.push is None:
        raise InvalidInput("Web push is off on this server. Set push.enabled to true, then try again.")
    new = subscriptions.checked(given.endpoint, given.keys.p256dh, given.keys.auth)
    id = await context.runtime.db.write(subscriptions.subscribe, caller.entity.id, caller.token.id, new)
    return PushSubscriptionOut(id=id)


@router.delete("/api/push/subscriptions/{subscription_id}", status_code=204, summary="End notifications in a browser")
async def unsubscribe(caller: Person, subscription_id: str) -> None:
    db = caller.runtime.db
    await db.write(subscriptions.unsubscribe, caller.entity.id, subscription_id)
