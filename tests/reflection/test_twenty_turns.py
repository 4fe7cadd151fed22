"""A conversation of twenty turns: someone grows frustrated, is helped, and is satisfied. Compared whole."""

from __future__ import annotations

from denizen import call, reply, scripted
from tests.world import World

SAID = [
    "Hello, I want to print labels from my spreadsheet.",
    "I pressed export and got a file with strange signs.",
    "It still shows strange signs.",
    "I don't understand what an encoding is.",
    "What does that mean for my file?",
    "That did not work, it is still wrong.",
    "This is bad, the labels are a mess.",
    "I hate this, it is a terrible waste of time!",
    "Why is this so awful?",
    "Okay.",
    "So I choose UTF-8 in the dialog?",
    "The dialog asks for a separator.",
    "A comma.",
    "The signs look right now.",
    "Good, the first page is fine.",
    "Great, thank you, that helped a lot!",
    "Can I print two pages at once?",
    "Perfect, this is exactly what I wanted.",
    "I love how easy it is now, thanks!",
    "Bye, have a nice day.",
]
ANSWERED = [
    "Export it as CSV.",
    "Try the export again.",
    "It may be the encoding.",
    "An encoding says which bytes stand for which letters.",
    "The letters were read by another table than they were written by.",
    "Which program opens it?",
    "Let us look at one label together.",
    "I am sorry. I will go through it with you, one step at a time.",
    "You are right to be annoyed. Open the file with Import, not by a double click.",
    "Take your time.",
    "Yes, UTF-8.",
    "Choose the comma.",
    "Exactly.",
    "Well done. Which label would you print first?",
    "That was the hard part.",
    "You did it yourself!",
    "Yes: choose 2 per sheet.",
    "Shall we save it as a template?",
    "You will not need me the next time.",
    "Goodbye, Noor!",
]
THOUGHT = [
    call("adjust", mood="patient", user_skill="novice", reason="The word encoding was new to them."),
    call("adjust", mood="patient", reason="Still explaining."),
    call("adjust", mood="empathetic", task_complexity="simple", reason="Two attempts have failed."),
    call("adjust", mood="empathetic", reason="Three attempts have failed."),
    call("adjust", mood="devastated", reason="Everything is lost."),
    call("adjust", mood="devastated", reason="Everything is lost."),
    call("adjust", reason="Stay with them."),
    call("adjust", mood="curious", reason="They answer in single words."),
    call("adjust", reason="It is getting better."),
    call("adjust", mood="encouraging", reason="It works."),
    call("adjust", user_skill="intermediate", reason="They found the dialog by themselves."),
    "I think they are happy.",
    "I think they are happy.",
    call("adjust", mood="encouraging", imprints={"next time": "offer the template"}, reason="Keep it up."),
    call("adjust", mood="neutral", reason="It is done."),
]
SIGNALS = [
    (4, "user_confused", "says don't understand"),
    (5, "user_confused", "says what does that mean"),
    (6, "user_frustrated", "score -0.74, strongly"),
    (7, "user_frustrated", "score -0.72, strongly"),
    (8, "user_frustrated", "score -0.89, strongly"),
    (9, "user_frustrated", "4 negative turns in a row"),
    (13, "low_engagement", "4 neutral turns in a row, 19 characters on average"),
    (14, "low_engagement", "5 neutral turns in a row, 20 characters on average"),
    (15, "user_satisfied", "score 0.57, strongly"),
    (16, "user_satisfied", "score 0.78, strongly"),
    (18, "user_satisfied", "score 0.78, strongly"),
    (19, "user_satisfied", "score 0.85, strongly"),
    (20, "user_satisfied", "3 positive turns in a row"),
]
STATES = [
    (4, "confusion_clarification", "changed", "patient", "novice", "unknown", "The word encoding was new to them."),
    (5, "confusion_clarification", "unchanged", "patient", "novice", "unknown", "Still explaining."),
    (6, "frustration_recovery", "changed", "empathetic", "novice", "simple", "Two attempts have failed."),
    (7, "frustration_recovery", "unchanged", "empathetic", "novice", "simple", "Three attempts have failed."),
    (8, "frustration_recovery", "failed", "empathetic", "novice", "simple", "mood: Input should be"),
    (9, "frustration_recovery", "unchanged", "empathetic", "novice", "simple", "Stay with them."),
    (13, "engagement_boost", "changed", "curious", "novice", "simple", "They answer in single words."),
    (14, "engagement_boost", "unchanged", "curious", "novice", "simple", "It is getting better."),
    (15, "satisfaction_reinforcement", "changed", "encouraging", "novice", "simple", "It works."),
    (
        16, "satisfaction_reinforcement", "changed", "encouraging", "intermediate", "simple",
        "They found the dialog by themselves.",
    ),
    (18, "satisfaction_reinforcement", "failed", "encouraging", "intermediate", "simple", "the answer holds no JSON"),
    (19, "satisfaction_reinforcement", "changed", "encouraging", "intermediate", "simple", "Keep it up."),
    (20, "satisfaction_reinforcement", "changed", "neutral", "intermediate", "simple", "It is done."),
]  # fmt: skip
TOLD = {
    5: "State of mind from now on: your mood is patient (take your time, one thing after the other), their skill is "
    "novice",
    7: "State of mind from now on: your mood is empathetic (acknowledge how they feel before anything else), their "
    "skill is novice, the task is simple",
    14: "State of mind from now on: your mood is curious (ask what you do not know yet), their skill is novice, the "
    "task is simple",
    16: "State of mind from now on: your mood is encouraging (say what has worked, and ask for a little more), their "
    "skill is novice, the task is simple",
    17: "State of mind from now on: your mood is encouraging (say what has worked, and ask for a little more), their "
    "skill is intermediate, the task is simple",
}
"""By turn; nothing in the others."""


async def test_someone_grows_frustrated_is_helped_and_is_satisfied(small_world: World):
    """The transcript, what the agent was told of itself, the signals and the states of mind, turn by turn."""
    small_world.denizen.models.register("utility", scripted(*THOUGHT, name="utility"))
    turns = [turn for text in ANSWERED for turn in (reply(text), "Answered Noor.")]
    ada = await small_world.agent("Ada", *turns, reflection={"profile": "standard", "model": "utility"})
    noor = await small_world.person("Noor")
    desk = await small_world.space("Desk", noor, ada)

    for text in SAID:
        await small_world.say(noor, text, desk)
        await small_world.run()

    spoken = [line for said, heard in zip(SAID, ANSWERED, strict=True) for line in (f"Noor: {said}", f"Ada: {heard}")]
    assert await small_world.transcript(desk) == spoken
    signals = reversed(await small_world.denizen.reflection.signals(ada, desk))
    assert [(each.cycle, each.name, each.rule) for each in signals] == SIGNALS
    found = [
        (each.cycle, each.metaprompt, each.outcome, *each.state.as_dict().values(), each.reason)
        for each in reversed(await small_world.denizen.reflection.states_of_mind(ada, desk))
    ]
    assert [(*each[:-1], each[-1][: len(wanted[-1])]) for each, wanted in zip(found, STATES, strict=True)] == STATES
    inboxes = [entry for entry in await small_world.history(ada) if entry.startswith("inbox")]
    told = {
        turn: line.removeprefix("- ").replace('in "Desk" (id: <Desk>) — ', "")
        for turn, entry in enumerate(inboxes, start=1)
        for line in entry.splitlines()
        if line.startswith("- ")
    }
    assert told == TOLD
    assert (await small_world.denizen.reflection.stance(ada, desk)).imprints == {"next time": "offer the template"}
