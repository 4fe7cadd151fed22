"""What is asked for twice with one key is done once; what takes no key is done once anyway, or says why not."""

from __future__ import annotations

from typing import Any

from denizen.models.scripted import forever
from tests.server import small_town
from tests.server.conftest import House
from tests.server.test_panels import speaking

ONCE_BY_NATURE = {
    "/api/agents/{agent_id}/suspend",
    "/api/agents/{agent_id}/resume",
    "/api/agents/{agent_id}/try-again",
    "/api/agents/{agent_id}/inbox/{event_id}/requeue",
    "/api/agents/{agent_id}/inbox/{event_id}/urgent",
    "/api/apply",
    "/api/calls/{call_id}/answer",
    "/api/bridges/{bridge_id}/addresses",
    "/api/bridges/{bridge_id}/channels",
    "/api/bridges/{bridge_id}/pause",
    "/api/bridges/{bridge_id}/resume",
    "/api/bridges/{bridge_id}/retry",
    "/api/entities/{entity_id}/identities",
    "/api/forget",
    "/api/push/subscriptions",
    "/api/memory/{memory_id}/revert",
    "/api/panels/{panel_id}/rounds/{round_id}/cancel",
    "/api/spaces/{space_id}/agents/{agent_id}/ask-for-answer",
    "/api/spaces/{space_id}/continue",
    "/hooks/bridges/{bridge_id}",
    "/api/spaces/{space_id}/stop",
    "/api/spaces/{space_id}/messages/{message_id}/try-again",
    "/api/spaces/{space_id}/members",
    "/hooks/calls/{call_id}",
    "/hooks/{webhook_id}",
}
"""Doing them again changes nothing."""
ONLY_ASKING = {
    "/api/models/test",
    "/api/agents/{agent_id}/cycles/{number}/rethink",
    "/api/panels/{panel_id}/advisors/suggest",
    "/api/panels/{panel_id}/cost",
    "/api/profiles/try",
    "/v1/embeddings",
}
"""They change nothing at all."""
AGAIN_IS_MEANT = {
    "/api/mcp-servers/answer",
    "/api/mcp-servers/{name}/sign-in",
    "/api/agents/{agent_id}/stances/{conversation_id}/try",
    "/api/bridges/{bridge_id}/codes",
    "/api/panels/{panel_id}/rounds/{round_id}/retry",
    "/api/panels/{panel_id}/rounds/{round_id}/synthesis",
    "/api/panels/{panel_id}/stances/{voice}/try",
    "/api/spaces/{space_id}/open",
}
"""Whoever asks again wants it done anew."""
TOLD_ONCE = {
    "/api/agents/{agent_id}/webhooks",
    "/api/bridges",
    "/api/logins",
    "/api/session",
    "/api/tokens",
    "/api/tokens/{token_id}/rotate",
}
"""They tell a secret that is shown once: a second answer could not be the first. What was made in vain is revoked."""
SEEN_TWICE = {"/api/agents/{agent_id}/goals", "/api/import"}
"""They make another of the same, which is easily seen and removed."""
REMOVED_AFTER_A_DAY = {"/api/files"}
"""They make another of the same, which nobody uses."""


def test_every_post_takes_a_key_or_needs_none() -> None:
    posts = [
        (path, {each["name"] for each in operation.get("parameters", ())})
        for method, path, operation in small_town.operations(small_town.description())
        if method == "POST"
    ]
    without = {path for path, names in posts if "Idempotency-Key" not in names}
    assert without == ONCE_BY_NATURE | ONLY_ASKING | AGAIN_IS_MEANT | TOLD_ONCE | SEEN_TWICE | REMOVED_AFTER_A_DAY


async def test_a_panel_is_filled_and_goes_on_once(small_house: House) -> None:
    """Advisors, brought in or added; cross-talk and votes, which cost something."""
    house = small_house
    noor = await house.world.person("Noor")
    house.world.denizen.models.register("m", forever(speaking))
    made = (await house.call("POST", "/api/panels", noor, json={"name": "Board", "settings": {"model": "m"}})).json()
    path = f"/api/panels/{made['id']}"

    async def twice(where: str, body: dict[str, Any]) -> Any:
        headers = {"Idempotency-Key": "again"}
        first, second = [await house.call("POST", f"{path}{where}", noor, json=body, headers=headers) for _ in "12"]
        assert (first.status_code, second.json()) == (201, first.json())
        return first.json()

    await twice("/advisors", {"name": "Seth"})
    brought = await twice("/advisors/import", {"advisors": [{"name": "Buber"}, {"name": "Pema"}], "replace": True})
    assert [each["name"] for each in brought["advisors"]] == ["Buber", "Pema"]
    listed = (await house.call("GET", f"{path}/advisors", noor)).json()["advisors"]
    assert [each["handle"] for each in listed] == ["buber", "pema"]
    asked = await twice("/rounds", {"text": "Well?"})
    await house.world.run()
    await twice(f"/rounds/{asked['id']}/crosstalk", {"rounds": 1})
    await house.world.run()
    vote = await twice(f"/rounds/{asked['id']}/vote", {"question": "Go?"})
    page = (await house.call("GET", f"{path}/rounds", noor)).json()["rounds"]
    assert [each["kind"] for each in page] == ["ask", "crosstalk", "vote"]
    another = await house.call("POST", f"{path}/rounds/{asked['id']}/vote", noor, json={"question": "Go?"})
    assert another.json()["id"] != vote["id"]
