"""`denizen panel`: creates panels, asks them, and reads their answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import JsonValue
from rich.table import Table
from rich.text import Text

from denizen.cli.api import Api
from denizen.cli.console import given_text, new_table, print_json, printable, stdout, write_document
from denizen.cli.mind import as_told
from denizen.cli.panel import advisors, mind
from denizen.cli.panel.columns import Columns, showing
from denizen.cli.panel.finding import PanelName, in_panel
from denizen.cli.panel.following import follow, panel_events
from denizen.client import Client
from denizen.errors import InvalidInput
from denizen.shapes.panels import CostOut, Panel, RoundOut
from denizen.shapes.stances import VoiceStanceOut

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Ask several advisors at once.")
app.add_typer(advisors.app, name="advisors")
app.add_typer(mind.app, name="mind")

_Model = Annotated[str | None, typer.Option(help="The model of the advisors, as `provider:name`.")]
_Reflection = Annotated[str | None, typer.Option(help="Reflection: a quick-start profile, such as basic.")]


@app.command("list")
def list_(api: Api) -> None:
    """List your panels and their advisors."""
    found = api.use(lambda client: client.panels())
    api.print_list(found, _table, "You are not in any panel yet. Create one with `denizen panel create NAME ADVISOR…`.")


@app.command()
def create(
    api: Api,
    name: Annotated[str, typer.Argument(help="The name.")],
    names: Annotated[list[str] | None, typer.Argument(metavar="[ADVISOR]...", help="The names of advisors.")] = None,
    private: Annotated[bool, typer.Option("--private", help="Only members can see it.")] = False,
    model: _Model = None,
    synthesis: Annotated[bool, typer.Option("--synthesis", help="Add a synthesis to every turn.")] = False,
    crosstalk: Annotated[int, typer.Option(min=0, max=5, help="Rounds of cross-talk.")] = 0,
    reflection: _Reflection = None,
) -> None:
    """Create a panel with these advisors."""
    settings: dict[str, Any] = {"crosstalk": crosstalk} if crosstalk else {}
    settings |= {"model": model} if model else {}
    settings |= {"synthesis": "always"} if synthesis else {}
    settings |= {"reflection": {"profile": reflection}} if reflection else {}
    drafts: list[dict[str, Any]] = [{"name": each} for each in names or ()]
    made = api.use(
        lambda client: client.create_panel(name, drafts, private=private, settings=settings),
        models=reflection is not None,
    )
    api.tell(made, f'The panel "{printable(made.name)}" is created. Its id is {made.id}.')


@app.command()
def show(api: Api, panel: PanelName) -> None:
    """Show the settings of a panel, its advisors and their moods."""

    async def work(client: Client, there: Panel) -> tuple[Panel, list[VoiceStanceOut]]:
        return there, await client.advisor_stances(there.id)

    there, stances = in_panel(api, panel, work)
    if not api.prints_json(there.model_dump(mode="json") | {"stances": stances}):
        _show(there, stances)


@app.command()
def edit(
    api: Api,
    panel: PanelName,
    name: Annotated[str | None, typer.Option(help="The new name.")] = None,
    model: _Model = None,
    synthesis: Annotated[
        bool | None, typer.Option("--synthesis/--no-synthesis", help="Whether every turn gets a synthesis.")
    ] = None,
    crosstalk: Annotated[int | None, typer.Option(min=0, max=5, help="Rounds of cross-talk.")] = None,
    others: Annotated[
        bool | None,
        typer.Option("--others/--no-others", help="Whether advisors see what the others said in the previous turn."),
    ] = None,
    reflection: _Reflection = None,
) -> None:
    """Change the settings of a panel. Answers in progress are not affected."""
    given: dict[str, Any] = {"model": model, "crosstalk": crosstalk, "show_others": others}
    given["synthesis"] = None if synthesis is None else "always" if synthesis else "on_demand"
    settings = {key: value for key, value in given.items() if value is not None}
    if not settings and name is None and reflection is None:
        raise InvalidInput("Nothing to change. Use for instance --name or --reflection.")

    async def work(client: Client, there: Panel) -> tuple[Panel, list[VoiceStanceOut]]:
        if reflection is not None:
            settings["reflection"] = advisors.with_profile(_reflection_of(there), reflection)
        changed = await client.change_panel(there.id, name=name, **settings)
        return changed, await client.advisor_stances(there.id)

    changed, stances = in_panel(api, panel, work, models=reflection is not None)
    if not api.prints_json(changed):
        _show(changed, stances)


@app.command()
def ask(
    api: Api,
    panel: PanelName,
    text: Annotated[str, typer.Argument(help="Markdown; `-` reads it from stdin. `@handle`: only those answer.")],
    thinking: Annotated[bool, typer.Option("--thinking", help="Show the thinking of reasoning models.")] = False,
    synthesis: Annotated[bool, typer.Option("--synthesis", help="Add a synthesis.")] = False,
    crosstalk: Annotated[int, typer.Option(min=0, max=5, help="Rounds of cross-talk.")] = 0,
    vote: Annotated[str | None, typer.Option(help="Start a vote on this question afterwards.")] = None,
) -> None:
    """Ask a panel, and show all answers side by side."""
    said = given_text(text)

    async def work(client: Client, there: Panel) -> list[RoundOut]:
        async with panel_events(client, there.id) as events:
            asked = await client.ask_panel(there.id, said)
            columns = Columns(there, asked.turn)
            with showing(columns, thinking=thinking, quiet=api.as_json) as show:
                await follow(client, events, columns, show, asked)
                if crosstalk:
                    begun = await client.crosstalk(there.id, asked.id, rounds=crosstalk)
                    await follow(client, events, columns, show, begun)
                last = [each for each in columns.in_order if each.kind != "vote"][-1]
                if synthesis and last.synthesis is None:
                    await follow(client, events, columns, show, await client.synthesize(there.id, last.id))
                if vote is not None:
                    await follow(client, events, columns, show, await client.vote(there.id, asked.id, vote))
        return columns.in_order

    told = in_panel(api, panel, work, answering=True)
    api.tell(told, _spent(told))
    if any(reply.state != "done" for each in told for reply in each.advisor_responses.values()):
        raise typer.Exit(1)


@app.command()
def transcript(
    api: Api,
    panel: PanelName,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file to write (default: stdout).")] = None,
) -> None:
    """Write the transcript of a panel, in Markdown."""

    async def work(client: Client, there: Panel) -> str:
        return await client.panel_transcript(there.id)

    text = in_panel(api, panel, work)
    if api.as_json and output is None:
        print_json({"markdown": text})
    else:
        write_document(text, output)


@app.command()
def cost(
    api: Api,
    panel: PanelName,
    text: Annotated[str, typer.Argument(help="The message; `-` reads it from stdin.")],
) -> None:
    """Estimate the cost of a message, without sending it."""
    said = given_text(text)

    async def work(client: Client, there: Panel) -> CostOut:
        return await client.panel_cost(there.id, said)

    told = in_panel(api, panel, work, answering=True)
    if api.prints_json(told):
        return
    for each in told.advisors:
        price = "price unknown" if each.cost_micros is None else _dollars(each.cost_micros)
        stdout().print(Text.assemble((printable(each.name), "bold"), (f"  {each.model}  {price}", "dim")))
    likely = "price unknown" if told.cost_micros is None else f"about {_dollars(told.cost_micros)}"
    most = "" if told.most_micros is None else f", {_dollars(told.most_micros)} at most"
    stdout().print(Text(f"{told.input_tokens:,} tokens in, {likely}{most}"))


def _show(there: Panel, stances: Iterable[VoiceStanceOut]) -> None:
    console, own = stdout(), there.settings
    console.print(Text.assemble((printable(there.name), "bold"), (f"  {there.turns:,} turns, {there.id}", "dim")))
    how = [f"model {own.get('model')}", f"synthesis {str(own.get('synthesis')).replace('_', ' ')}"]
    how += [] if own.get("show_others", True) else ["others hidden"]
    how += [f"cross-talk {own.get('crosstalk')}", f"reflection {advisors.reflection_line(_reflection_of(there))}"]
    console.print(Text(f"  {printable(', '.join(how))}", style="dim"), soft_wrap=True)
    known = {each.id: each for each in there.advisors}
    for each in stances:
        advisor = known.get(each.voice)
        head = f"@{advisor.handle}" if advisor is not None else each.voice
        off = "" if advisor is None or advisor.active else "  switched off"
        told = Text.assemble((head, "cyan"), f"  {printable(each.name)}", (off, "dim"), f"  {as_told(each.state)}")
        console.print(told, soft_wrap=True)
        for reason in mind.reasons(each):
            console.print(Text(f"  {printable(reason)}", style="dim"), soft_wrap=True)


def _reflection_of(there: Panel) -> Mapping[str, JsonValue]:
    found = there.settings.get("reflection")
    return found if isinstance(found, dict) else {}


def _spent(told: Iterable[RoundOut]) -> str:
    rounds = list(told)
    used = sum(each.input_tokens for each in rounds), sum(each.output_tokens for each in rounds)
    return f"{used[0]:,} tokens in, {used[1]:,} out, {_dollars(sum(each.cost_micros for each in rounds))}"


def _dollars(micros: int) -> str:
    return f"${micros / 1_000_000:.4f}"


def _table(found: Sequence[Panel]) -> Table:
    table = new_table()
    table.add_column("panel", no_wrap=True)
    table.add_column("turns", justify="right")
    table.add_column("advisors", ratio=1)
    for each in found:
        names = ", ".join(f"@{advisor.handle}" for advisor in each.advisors) or "none: the plain assistant answers"
        table.add_row(Text(printable(each.name), style="cyan"), f"{each.turns:,}", Text(names, style="dim"))
    return table
