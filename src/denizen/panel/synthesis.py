"""The synthesis of a turn: where the advisors agree, where they do not, what is to be decided. Pure."""

from __future__ import annotations

from typing import Final

from denizen.panel.context import OtherReply, PanelTurn, Persona, RequestMessage, bracketed, context

SYSTEM: Final = """\
Several independent voices have answered someone who is thinking something through. Sum up for that person what they \
said, in Markdown, under three headings:
## Agreements
## Disagreements
## To decide
Under the first: what they have in common. Under the second: each point on which they differ, who holds what, by \
name, and why. Under the third: what the person now has to decide or find out, the most important first. Add no \
advice of your own and do not smooth over contradictions. Be brief."""
SAID: Final = "This is what the voices said:"
TASK: Final = "Sum it up now."


def lines(present: PanelTurn, characters: int) -> list[RequestMessage]:
    """Builds the request: the question, and everything said about it."""
    exchanges = [
        bracketed(
            SAID,
            [
                OtherReply(each.round_id, voice, said.name, said.text, said.outside)
                for voice, said in each.words.items()
            ],
            characters,
        )
        for each in present.exchanges
        if each.words
    ]
    asked = context(
        Persona("synthesis", SYSTEM), [], PanelTurn(present.message), characters=2**31, reference_characters=characters,
        task=TASK,
    )  # fmt: skip
    return [*asked[:-1], *exchanges, asked[-1]]
