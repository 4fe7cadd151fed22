"""States of mind of the voices of a panel over HTTP, for those who are in it."""

from __future__ import annotations

from typing import Any

from denizen import call, scripted
from denizen.client import Client
from denizen.models.scripted import forever
from denizen.panel.panels import Panel
from denizen.spaces.directory import Entity
from tests.server.conftest import House
from tests.server.test_panels import speaking
from tests.server.test_stances import CROSS

PATIENT = call("adjust", mood="patient", reason="They are cross.")
BASIC = {"profile": "basic", "model": "utility"}
OFF = {"profile": "off"}


async def board(house: House, *advisors: Any, answers: int = 1) -> tuple[Entity, Panel]:
    """Noor, and a panel that reflects; the utility model has so many answers."""
    models = house.world.denizen.models
    models.register("m", forever(speaking))
    models.register("utility", scripted(*[PATIENT] * answers, name="utility"))
    noor = await house.world.person("Noor")
    made = house.world.denizen.panels.create("Board", [noor], advisors=advisors, model="m", reflection=BASIC)
    return noor, await made


async def test_a_voices_stance_is_seen_set_reset_and_tried(small_house: House) -> None:
    """Everything that Python can do with it, HTTP can; each voice has its own."""
    noor, panel = await board(small_house, "Seth", {"name": "Buber", "reflection": OFF}, answers=3)
    await small_house.world.denizen.panels.ask(panel, noor, CROSS)
    await small_house.world.run()
    seth, buber = await small_house.world.denizen.advisors.list(panel)
    of_panel = f"/api/panels/{panel.id}/stances"

    async def ask(method: str, path: str = "", **body: Any) -> Any:
        sent = {"json": body} if method in ("PUT", "POST") else {}
        answer = await small_house.call(method, f"{of_panel}/{seth.id}{path}", noor, **sent)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    listed = (await small_house.call("GET", of_panel, noor)).json()["stances"]
    assert [(each["voice"], each["name"], each["reflects"], each["state"]["mood"]) for each in listed] == [
        (seth.id, "Seth", True, "patient"),
        (buber.id, "Buber", False, "neutral"),
    ]
    found = await ask("GET")
    assert found == listed[0]
    assert (found["space_id"], found["turns"], found["last"]["cycle"]) == (panel.id, 1, 1)
    seen = (await ask("GET", "/signals"))["signals"]
    assert [(each["name"], each["person"], each["cycle"]) for each in seen] == [("user_frustrated", noor.id, 1)]
    now = await ask("PUT", "/state", mood="curious", user_skill="expert")
    assert (now["state"]["user_skill"], now["last"]["by"]) == ("expert", noor.id)
    tried = await ask("POST", "/try", template="How is {{current_mood}}?")
    assert (tried["prompt"], tried["after"]["mood"], tried["applied"]) == ("How is curious?", "patient", False)
    tried = await ask("POST", "/try", metaprompt="confusion_clarification", apply=True)
    assert (tried["applied"], (await ask("GET"))["state"]["mood"]) == (True, "patient")
    await ask("DELETE", "/state")
    assert (await ask("GET"))["state"]["mood"] == "neutral"
    page = await ask("GET", "/history?limit=3")
    assert [(each["cause"], each["cycle"]) for each in page["runs"]] == [
        ("reset", None), ("manual", None), ("set", None),
    ]  # fmt: skip
    page = await ask("GET", f"/history?before={page['next']}")
    assert ([(each["cause"], each["cycle"]) for each in page["runs"]], page["next"]) == ([("user_frustrated", 1)], None)
    assert (await small_house.call("GET", f"{of_panel}/{buber.id}/history", noor)).json()["runs"] == []


async def test_a_panel_without_advisors_has_the_assistants(small_house: House) -> None:
    noor, panel = await board(small_house)
    path = f"/api/panels/{panel.id}/stances"
    listed = (await small_house.call("GET", path, noor)).json()["stances"]
    assert [(each["voice"], each["name"]) for each in listed] == [("assistant", "Assistant")]
    now = await small_house.call("PUT", f"{path}/assistant/state", noor, json={"mood": "curious"})
    assert now.json()["told"] == "your mood is curious (ask what you do not know yet)"


async def test_voices_that_there_are_not_and_panels_of_others_are_not_found(small_house: House) -> None:
    """Neither one that was removed, nor one of another panel; and whoever is not in the panel learns nothing of it."""
    noor, panel = await board(small_house, "Seth", "Buber")
    denizen = small_house.world.denizen
    sam = await small_house.world.person("Sam")
    seth, buber = await denizen.advisors.list(panel)
    other = await denizen.panels.create("Other", [noor], advisors=["Pema"])
    [pema] = await denizen.advisors.list(other)
    await denizen.advisors.remove(panel, buber)
    for who, voice in ((noor, buber.id), (noor, pema.id), (noor, "synthesis"), (noor, "no%00body"), (sam, seth.id)):
        path = f"/api/panels/{panel.id}/stances/{voice}"
        for method, where, body in (
            ("GET", "", None),
            ("PUT", "/state", {"mood": "curious"}),
            ("DELETE", "/state", None),
            ("GET", "/history", None),
            ("GET", "/signals", None),
            ("POST", "/try", {"metaprompt": "frustration_recovery"}),
        ):
            answer = await small_house.call(method, f"{path}{where}", who, json=body)
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), (voice, method, where)
    assert (await small_house.call("GET", f"/api/panels/{panel.id}/stances", sam)).status_code == 404
    assert await denizen.advisors.states_of_mind(panel, seth) == []


async def test_what_cannot_be_is_refused_and_nothing_is_changed(small_house: House) -> None:
    """With a sentence that names it: also in a file of advisors, and where a panel is opened."""
    noor, panel = await board(small_house, "Seth")
    [seth] = await small_house.world.denizen.advisors.list(panel)
    path, wrong = f"/api/panels/{panel.id}", {"profile": "basik"}
    advisor, no_profile = {"name": "Pema", "reflection": wrong}, "there is no profile 'basik'"
    unknown = {"sentiment": {"enabled": True, "presets": ["cheer_up"]}}
    for method, where, body, told in [
        ("PUT", f"{path}/stances/{seth.id}/state", {"mood": "grumpy"}, "mood"),
        ("PUT", f"{path}/stances/{seth.id}/state", {}, "Give at least one of"),
        ("POST", f"{path}/stances/{seth.id}/try", {}, "Use either `metaprompt` or `template`"),
        ("POST", f"{path}/stances/{seth.id}/try", {"metaprompt": "cheer_up"}, "Unknown metaprompt 'cheer_up'"),
        ("POST", "/api/panels", {"name": "New", "settings": {"reflection": wrong}}, no_profile),
        ("POST", "/api/panels", {"name": "New", "advisors": [advisor]}, no_profile),
        ("PATCH", path, {"settings": {"reflection": wrong}}, no_profile),
        ("PATCH", path, {"settings": {"reflection": {"profil": "basic"}}}, "reflection.profil"),
        ("PATCH", f"{path}/advisors/{seth.id}", {"reflection": unknown}, "there is no metaprompt 'cheer_up'"),
        ("POST", f"{path}/advisors", advisor, no_profile),
        ("POST", f"{path}/advisors/import", {"advisors": [{"name": "Gus"}, advisor]}, no_profile),
    ]:
        answer = await small_house.call(method, where, noor, json=body)
        assert answer.status_code == 422, (where, answer.text)
        assert told in answer.text
    assert [each.name for each in (await small_house.world.denizen.panels.list(noor))] == ["Board"]
    assert [each.name for each in await small_house.world.denizen.advisors.list(panel)] == ["Seth"]
    now = (await small_house.call("GET", path, noor)).json()
    assert (now["settings"]["reflection"]["profile"], now["advisors"][0]["reflection"]) == ("basic", None)


async def test_how_a_panel_and_its_advisors_reflect_is_set_taken_along_and_taken_away(small_house: House) -> None:
    noor, panel = await board(small_house, "Seth")
    [seth] = await small_house.world.denizen.advisors.list(panel)
    path = f"/api/panels/{panel.id}"
    names = (await small_house.call("GET", "/api/reflection", noor)).json()
    assert names["profiles"] == ["off", "basic", "standard", "advanced", "tutor"]
    own = {"profile": names["profiles"][-1], "model": "utility"}
    changed = await small_house.call("PATCH", f"{path}/advisors/{seth.id}", noor, json={"reflection": own})
    assert changed.json()["reflection"] == {**own, "sentiment": None, "metaprompts": []}
    await small_house.call("PATCH", path, noor, json={"settings": {"reflection": OFF}})
    file = (await small_house.call("GET", f"{path}/advisors/export", noor)).json()
    assert file["advisors"][0]["reflection"] == own
    brought = await small_house.call("POST", f"{path}/advisors/import", noor, json={**file, "replace": True})
    [again] = brought.json()["advisors"]
    assert again["reflection"]["profile"] == "tutor"
    where = f"{path}/stances/{again['id']}"
    assert (await small_house.call("GET", where, noor)).json()["reflects"]
    await small_house.call("PATCH", f"{path}/advisors/{again['id']}", noor, json={"reflection": None})
    assert not (await small_house.call("GET", where, noor)).json()["reflects"]


async def test_a_state_of_mind_that_changes_is_told_in_the_stream(small_house: House) -> None:
    """What reflecting came to, and what somebody does by hand: `panel.changed`, and a request tells what it is."""
    noor, panel = await board(small_house, "Seth")
    [seth] = await small_house.world.denizen.advisors.list(panel)
    path = f"/api/panels/{panel.id}/stances/{seth.id}"
    async with small_house.stream(noor, panel.space) as there, small_house.listen(noor, "/api/stream") as own:
        await small_house.world.denizen.panels.ask(panel, noor, CROSS)
        await small_house.world.run()
        for stream in (there, own):
            assert (await stream.until("panel.changed"))[-1].data["panel"] == panel.id
        assert (await small_house.call("GET", path, noor)).json()["state"]["mood"] == "patient"
        for method, body in (("PUT", {"mood": "curious"}), ("DELETE", None)):
            await small_house.call(method, f"{path}/state", noor, json=body)
            for stream in (there, own):
                await stream.until("panel.changed")


async def test_the_client_knows_states_of_mind_of_panels(small_house: House) -> None:
    noor, panel = await board(small_house, "Seth", {"name": "Buber", "reflection": OFF}, answers=2)
    async with Client(small_house.address, await small_house.token(noor)) as client:
        assert "basic" in (await client.reflection_names()).profiles
        await client.ask_panel(panel.id, CROSS)
        await small_house.world.run()
        seth, buber = await client.advisor_stances(panel.id)
        assert [(each.name, each.reflects, each.state.mood) for each in (seth, buber)] == [
            ("Seth", True, "patient"),
            ("Buber", False, "neutral"),
        ]
        assert await client.advisor_stance(panel.id, seth.voice) == seth
        own = (await client.panel(panel.id)).advisors[1].reflection
        assert own is not None
        assert own["profile"] == "off"
        assert [each.cycle for each in (await client.advisor_signals(panel.id, seth.voice)).signals] == [1]
        assert (await client.set_advisor_state_of_mind(panel.id, seth.voice, mood="curious")).state.mood == "curious"
        tried = await client.try_advisor_metaprompt(panel.id, seth.voice, template="How is {{current_mood}}?")
        assert (tried.prompt, tried.after.mood, tried.applied) == ("How is curious?", "patient", False)
        await client.reset_advisor_state_of_mind(panel.id, seth.voice)
        page = await client.advisor_states_of_mind(panel.id, seth.voice, limit=2)
        assert [each.cause for each in page.runs] == ["reset", "set"]
        rest = await client.advisor_states_of_mind(panel.id, seth.voice, before=page.next)
        assert [(each.cause, each.cycle) for each in rest.runs] == [("user_frustrated", 1)]
