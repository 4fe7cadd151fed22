"""Definition files: what they say is what is meant, and what is wrong in them is said with its line and the cure."""

from __future__ import annotations

import json
import types
from datetime import time
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from denizen.agents.definition import AgentDefinition
from denizen.agents.differences import FieldChange, difference
from denizen.agents.documents import AgentDocument, PersonDocument, SpaceDocument
from denizen.agents.files import Declared, DefinitionFile, read, render
from denizen.agents.registry import define
from denizen.errors import DefinitionsInvalid
from denizen.tools.settings import McpServer


def one(text: str, name: str = "agents.yaml") -> Any:
    """The only document of the file."""
    (declared,) = read([DefinitionFile(name, text)])
    return declared.document


def problems(*texts: str, name: str = "agents.yaml") -> list[str]:
    with pytest.raises(DefinitionsInvalid) as failure:
        read([DefinitionFile(name, text) for text in texts])
    return list(failure.value.problems)


# What files say


def test_a_file_holds_agents_spaces_and_people() -> None:
    """Several documents, or a list of them; an agent need not say that it is one."""
    text = "name: Pat\n---\nkind: space\nname: Planning\nmembers: [pat]\n---\nkind: person\nname: Noor Al-Amin\n"
    found = read([DefinitionFile("team.yaml", text)])
    assert [(type(each.document), each.place) for each in found] == [
        (AgentDocument, "team.yaml:1"),
        (SpaceDocument, "team.yaml:3"),
        (PersonDocument, "team.yaml:7"),
    ]
    assert [each.document.handle for each in found if isinstance(each.document, AgentDocument | PersonDocument)] == [
        "pat",
        "noor-al-amin",
    ]
    listed = read([DefinitionFile("team.yaml", "- name: Pat\n- kind: person\n  name: Noor\n")])
    assert [each.place for each in listed] == ["team.yaml:1", "team.yaml:2"]


def test_a_document_has_every_field_of_a_definition_on_its_own_level() -> None:
    """And none of what stands beside them has the name of one."""
    document = one(
        "name: Pat\nmodel: demo\ninstructions: |\n  You plan.\n  Well.\nzone: Europe/Berlin\n"
        "cycle: {max_steps: 3, max_dollars: 0.1}\nheartbeat: {every_minutes: 30, active_from: 09:00}\n"
        "tools: [oven, {kind: client, name: confirm, description: Ask.}]\n"
    )
    assert document.definition == define(
        model="demo",
        instructions="You plan.\nWell.\n",
        zone="Europe/Berlin",
        cycle={"max_steps": 3, "max_dollars": Decimal("0.1")},
        heartbeat={"every_minutes": 30, "active_from": time(9)},
        tools=["oven", {"kind": "client", "name": "confirm", "description": "Ask."}],
    )
    beside = AgentDocument.model_fields.keys() - AgentDefinition.model_fields.keys()
    assert beside == {"kind", "name", "handle", "instructions_file", "spaces", "goals", "notes", "plans"}


def test_texts_alone_stand_for_spaces_goals_and_members() -> None:
    """The short form is the long one with nothing else in it."""
    short = one("name: Pat\nspaces: [Ops]\ngoals: [Ship it]\n")
    assert short == one("name: Pat\nspaces: [{name: Ops}]\ngoals: [{text: Ship it}]\n")
    assert one("kind: space\nname: Ops\nmembers: ['@Pat']\n").members[0].handle == "pat"


@pytest.mark.parametrize("written", ["no", "2026-02-19", "09:00", "on", "1e"])
def test_yaml_is_version_1_2_and_knows_no_dates(written: str) -> None:
    """`no` is a word, and what looks like a date is what was written."""
    assert one(f"name: Pat\ninstructions: {written}\n").instructions == written


def test_json_is_read_as_json() -> None:
    """With tabs and escapes as programs write them, and with the lines of what is wrong."""
    text = json.dumps({"name": "Pat 😀", "cycle": {"max_steps": 3}}, indent="\t")
    document = one(text, name="agents.json")
    assert (document.name, document.cycle.max_steps) == ("Pat 😀", 3)
    wrong = json.dumps([{"name": "Pat"}, {"name": "Eli", "cycle": {"max_step": 3}}], indent="\t")
    assert problems(wrong, name="agents.json") == [
        "agents.json:8: cycle.max_step: unknown key 'max_step' (did you mean 'max_steps'?)"
    ]
    assert problems('{"name": "Pat",\n"name": "Eli"}', name="a.json") == ["a.json:2: the key 'name' appears twice"]
    assert problems('{"name": }', name="a.json") == ["a.json:1: this is not JSON: Expecting value (column 10)"]


def test_instructions_may_stand_in_a_file_of_their_own() -> None:
    """Named relative to the file that names it."""
    files = {"pat.md": "You plan."}
    (declared,) = read([DefinitionFile("a.yaml", "name: Pat\ninstructions_file: pat.md\n", files.__getitem__)])
    assert isinstance(declared.document, AgentDocument)
    assert declared.document.definition == define(instructions="You plan.")
    assert problems("name: Pat\ninstructions_file: nope.md\n") == [
        "agents.yaml:2: instructions_file: 'nope.md' cannot be read: No such file"
    ]
    assert problems("name: Pat\ninstructions: x\ninstructions_file: pat.md\n") == [
        "agents.yaml:3: instructions_file: give either 'instructions' or 'instructions_file', not both"
    ]


# What is wrong


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name: Pat\ninstrutions: x", "2: instrutions: unknown key 'instrutions' (did you mean 'instructions'?)"),
        ("name: Pat\nmax_steps: 3", "2: max_steps: unknown key 'max_steps' (did you mean 'cycle.max_steps'?)"),
        ("name: Pat\ncycle:\n  max_step: 3", "3: cycle.max_step: unknown key 'max_step' (did you mean 'max_steps'?)"),
        (
            "name: Pat\ncycle:\n  awareness: combind",
            "3: cycle.awareness: 'combind' is none of 'none', 'preview', 'urgent', 'combined', 'all' (did you mean",
        ),
        (
            "name: Pat\ntools:\n  - oven\n  - kind: client\n    name: ask\n    descripton: x\n    description: y",
            "6: tools[1].descripton: unknown key 'descripton' (did you mean 'description'?)",
        ),
        (
            "name: Pat\ntools:\n  - kind: clinet\n    name: ask",
            "3: tools[0]: 'clinet' is none of 'http', 'client', 'a2a' (did you mean 'client'?)",
        ),
        ("name: Pat\ntools: [{name: ask}]", "2: tools[0]: 'kind' is missing, which says what it is"),
        (
            "name: Pat\nmcp:\n  web:\n    comand: x\n    url: https://example.com",
            "4: mcp.web.comand: unknown key 'comand' (did you mean 'command'?)",
        ),
        (
            "name: Pat\nheartbeat:\n  every_minutes: 0",
            "3: heartbeat.every_minutes: should be greater than or equal to 1, not 0",
        ),
        ("model: demo", "1: name: this is missing"),
        ("name: Pat\nnotes: {port: 80}", "2: notes.port: should be a text: put 80 in quotation marks"),
        ("name: Pat\nwindow: 5", "2: window: should be a mapping of keys to values"),
        ("name: Pat\ngoals: Ship it", "2: goals: should be a list: write each thing after a dash"),
        ("name: Pat\nspaces: [Ops, Ops]", "1: spaces: 'Ops' appears twice"),
        (
            "name: Pat\nplans:\n  - name: x\n    instruction: y\n    cron: '* * *'",
            "3: plans[0]: '* * *' is not a cron expression: it needs five fields: minute, hour, day of month, month",
        ),
        (
            "name: Pat\nplans: [{name: x, instruction: y}]",
            "2: plans[0]: use exactly one of cron, at or after; none is given",
        ),
        (
            "name: Pat\nplans:\n  - {name: x, instruction: y, at: tomorrow}",
            "3: plans[0].at: 'tomorrow' is not a time. Use ISO 8601, such as \"2026-02-19T09:00\"",
        ),
        (
            "kind: spce\nname: Ops",
            "1: kind: 'spce' is none of 'agent', 'space', 'person', 'bridge' (did you mean 'space'?)",
        ),
        ("kind: space\nname: Ops\nmembrs: []", "3: membrs: unknown key 'membrs' (did you mean 'members'?)"),
        ("name: Pat\nname: Eli", "2: the key 'name' appears twice"),
        ("name: Pat\ninstructions: !!python/name:os.system x", "2: the tag 'python/name:os.system' is not supported"),
        ("- Pat", "1: a document has to be a mapping, such as `name: Ada`"),
        ("", "1: it is empty"),
        ("name: [", "2: this is not YAML: while parsing a flow node"),
    ],
)
def test_a_problem_names_its_line_its_key_and_the_nearest_right_word(text: str, problem: str) -> None:
    """Also inside nested things, of every kind."""
    (found,) = problems(text + "\n")
    assert found.startswith(f"agents.yaml:{problem}")


def test_all_problems_of_all_files_are_told_at_once() -> None:
    """In the order in which they stand there."""
    first = "name: Pat\nzon: UTC\ncycle:\n  max_steps: 0\n---\nname: Eli\nmodell: demo\n"
    second = "name: [\n"
    with pytest.raises(DefinitionsInvalid) as failure:
        read([DefinitionFile("a.yaml", first), DefinitionFile("b.yaml", second)])
    assert [each.split(": ")[0] for each in failure.value.problems] == ["a.yaml:2", "a.yaml:4", "a.yaml:7", "b.yaml:2"]
    assert str(failure.value) == "\n".join(failure.value.problems)
    assert failure.value.code == "definitions_invalid"


def test_what_is_defined_twice_is_told_with_both_places() -> None:
    """Handles are one world; a person and an agent cannot share one. Spaces are known by name."""
    assert problems("name: Pat\n", "kind: person\nname: Pat\n") == [
        "agents.yaml:1: the handle 'pat' is defined already at agents.yaml:1"
    ]
    assert problems("kind: space\nname: Ops\n---\nkind: space\nname: Ops\n") == [
        "agents.yaml:4: the space 'Ops' is defined already at agents.yaml:1"
    ]


def test_a_small_file_that_means_a_large_one_is_refused() -> None:
    """Aliases of aliases, and aliases of themselves."""
    lines = ["name: Pat", "a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 8)]
    (found,) = problems("\n".join(lines))
    assert found.endswith("there are more than 100,000 values in it")
    (found,) = problems("name: Pat\ngoals: &g [*g]\n")
    assert "nesting is too deep" in found or "not YAML" in found


# Round trips


TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)
LINES = st.lists(TEXTS, max_size=4).map("\n".join)
SCHEMAS = st.sampled_from(
    [
        {"type": "object", "properties": {"city": {"type": "string", "description": "Which: a, b"}}},
        {"type": "object", "properties": {}, "additionalProperties": False},
    ]
)
NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,20}", fullmatch=True)
KNOWN: dict[str, st.SearchStrategy[Any]] = {
    # What has to be more than its type says.
    "zone": st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata"]),
    "parameters": SCHEMAS,
    "url": st.sampled_from(["https://example.com/a?b=c", "http://localhost:8080/{city}", None]),
    "command": st.sampled_from(["uvx", None]),
    "instructions": LINES,
    "name": NAMES,
    "mcp": st.deferred(lambda: st.dictionaries(NAMES, fields_of(McpServer), max_size=2)),
}


def values_of(annotation: Any, metadata: list[Any], name: str = "") -> st.SearchStrategy[Any]:
    """Values as a file would have them for a field of this type."""
    if name in KNOWN:
        return KNOWN[name]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return values_of(arguments[0], [*metadata, *arguments[1:]])
    if origin in (Union, types.UnionType):
        return st.one_of(*(values_of(each, metadata) for each in arguments))
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (tuple, list):
        return st.lists(values_of(arguments[0], []), max_size=3)
    if origin is dict:
        return st.dictionaries(TEXTS, values_of(arguments[1], []), max_size=3)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return fields_of(annotation)
    low = next((each.ge for each in metadata if getattr(each, "ge", None) is not None), None)
    high = next((each.le for each in metadata if getattr(each, "le", None) is not None), None)
    simple: dict[Any, st.SearchStrategy[Any]] = {
        str: TEXTS,
        bool: st.booleans(),
        int: st.integers(0 if low is None else int(low), 10**6 if high is None else int(high)),
        float: st.floats(0.01, 1000, allow_nan=False),
        Decimal: st.decimals(Decimal("0.01"), Decimal(1000), places=2),
        time: st.times().map(lambda each: each.replace(microsecond=0, fold=0)),
        type(None): st.none(),
        Any: st.integers(),
    }
    return simple[annotation]


@cache
def fields_of(model: type[BaseModel]) -> st.SearchStrategy[dict[str, Any]]:
    required = {name: field for name, field in model.model_fields.items() if field.is_required() or name == "kind"}
    optional = {name: field for name, field in model.model_fields.items() if name not in required}
    return st.fixed_dictionaries(
        {name: values_of(field.annotation, field.metadata, name) for name, field in required.items()},
        optional={name: values_of(field.annotation, field.metadata, name) for name, field in optional.items()},
    ).map(lambda given: without_what_is_wrong(model, given))


def without_what_is_wrong(model: type[BaseModel], given: dict[str, Any]) -> dict[str, Any]:
    """The fields but for those that cannot be so: what validators ask for beyond types, nobody draws by chance."""
    try:
        model.model_validate(given)
    except ValidationError as error:
        wrong = {each["loc"][0] for each in error.errors() if each["loc"]}
        left = {
            name: value for name, value in given.items() if name not in wrong or model.model_fields[name].is_required()
        }
        return without_what_is_wrong(model, left) if len(left) < len(given) else given
    return given


@st.composite
def definitions(draw: st.DrawFn) -> AgentDefinition:
    """A definition of any fields there are, whoever added them; what cannot be so has its default."""
    given = draw(fields_of(AgentDefinition))
    try:
        return AgentDefinition.model_validate(given)
    except ValidationError:  # of the whole: instructions too long for the window, say
        return AgentDefinition.model_validate({"instructions": given.get("instructions", "")})


@given(definitions(), TEXTS)
@example(define(instructions="a: b\n\n  c\n"), "x")
@example(define(instructions="first\n second \n\tthird\r\n\x85"), "x")
@example(define(instructions="no trailing newline\nhere"), "x")
@example(define(instructions="three\n\n\n"), "x")
@example(define(instructions="# no comment\n--- no document\n"), "x")
@example(define(cycle={"max_dollars": Decimal("0.30"), "max_seconds": 1e-05}), "x")
@example(define(tools=["1", {"kind": "client", "name": "null", "description": "~"}][1:]), "true")
def test_what_is_rendered_reads_as_the_same(definition: AgentDefinition, note: str) -> None:
    """Any definition, with any text in it, round-trips through a file."""
    whole = {name: getattr(definition, name) for name in AgentDefinition.model_fields}
    document = AgentDocument(**whole, name="No", handle="on", notes={"1": f"x{note}"[:400]})
    again = one(render([document]))
    assert again == document
    assert again.definition == definition
    assert AgentDefinition.model_validate_json(definition.model_dump_json(exclude_defaults=True)) == definition


def test_a_rendered_file_is_good_to_read() -> None:
    """Names first, texts of several lines as such, nothing that is as by default."""
    document = one('zone: Europe/Berlin\nspaces: [Ops]\ninstructions: "You plan.\\nWell.\\n"\nname: Pat\n')
    assert render([document]) == (
        "name: Pat\ninstructions: |\n  You plan.\n  Well.\nzone: Europe/Berlin\nspaces:\n  - name: Ops\n"
    )


def test_several_documents_are_rendered_in_one_file() -> None:
    first, second = one("name: Pat\n"), one("kind: space\nname: Ops\n")
    text = render([first, second])
    assert [each.document for each in read([DefinitionFile("a.yaml", text)])] == [first, second]
    assert read([DefinitionFile("a.yaml", text)])[1] == Declared(second, "a.yaml:3")


# Differences


@given(definitions(), definitions())
def test_there_is_a_difference_if_and_only_if_there_is_one(old: AgentDefinition, new: AgentDefinition) -> None:
    """So an agent is edited when, and only when, something is told."""
    assert bool(difference(old, new)) == (old != new)
    assert difference(old, old) == []


def test_a_difference_names_the_field_and_both_values() -> None:
    """What is new is told without its defaults; what had its default, with it."""
    old = define(instructions="a", tools=["oven"])
    new = define(instructions="b", tools=["oven", {"kind": "client", "name": "ask", "description": "d"}], zone="UTC")
    new = define(
        **new.model_dump(exclude_defaults=True) | {"cycle": {"max_steps": 3}, "heartbeat": {"every_minutes": 5}}
    )
    assert difference(old, new) == [
        FieldChange("instructions", "a", "b"),
        FieldChange("tools.ask.kind", None, "client"),
        FieldChange("tools.ask.name", None, "ask"),
        FieldChange("tools.ask.description", None, "d"),
        FieldChange("cycle.max_steps", 20, 3),
        FieldChange("heartbeat.every_minutes", None, 5),
    ]


def test_a_difference_shows_no_secret() -> None:
    """Not in headers, environments, addresses and options; names of secrets are none."""
    headers = {"Authorization": "Bearer ${TOKEN}", "X-Key": "hunter2", "Accept": "application/json"}
    new = define(
        instructions="Use sk-hunter2hunter2.",
        tools=[
            {"kind": "http", "name": "get", "description": "d", "url": "https://b/?token=hunter2", "headers": headers}
        ],
        mcp={
            "web": {"command": "uvx", "args": ["x", "--token", "hunter2", "--api-key=hunter2"], "env": {"K": "hunter2"}}
        },
    )
    changes = {each.path: each.new for each in difference(define(), new)}
    assert "hunter2" not in str(changes)
    assert changes["tools.get.headers.Authorization"] == "Bearer ${TOKEN}"
    assert changes["tools.get.headers.Accept"] == "application/json"
    assert changes["mcp.web.args"] == ["x", "--token", "•••", "--api-key=•••"]
    other = new.model_copy(update={"mcp": {"web": new.mcp["web"].model_copy(update={"env": {"K": "hunter3"}})}})
    assert difference(new, other) == [FieldChange("mcp.web.env.K", "•••", "•••")]
