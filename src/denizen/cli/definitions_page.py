"""Generates docs/definitions.md: every key of a definition file, from the models and the docstrings of their fields."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from denizen.agents.documents import AgentDocument, BridgeDocument, PersonDocument, SpaceDocument, plain
from denizen.settings.meanings import meanings

_FIRST: Final = ("kind", "name", "handle", "instructions", "instructions_file")

MEANINGS: Final = {
    "kind": "What the document is about.",
    "tools[http].kind": "`http`: a request that the agent may make.",
    "tools[http].name": "By which the model calls it.",
    "tools[http].method": "Of the request.",
    "tools[http].headers": "Of the request; `${NAME}` stands for a secret of the organization.",
    "tools[http].seconds": "How long an answer is waited for.",
    "tools[http].on_crash": "If the process dies during a call: `report` that the outcome is unknown, or `retry`.",
    "tools[client].kind": "`client`: a question to people, or to programs of theirs.",
    "tools[client].name": "By which the model calls it.",
    "tools[client].visible": "Whether people in the space see the call as it is written, and its result.",
    "tools[a2a].kind": "`a2a`: an agent elsewhere that the agent gives tasks to.",
    "tools[a2a].name": "By which the model calls it.",
    "mcp.*.command": "A program to start.",
    "mcp.*.args": "Its arguments.",
    "mcp.*.url": "An address, in place of a program.",
    "mcp.*.headers": "Of requests to that address; `${NAME}` stands for a secret of the organization.",
    "mcp.*.oauth.client_id": "By which the authorization server knows the client.",
    "mcp.*.seconds": "How long a call is waited for.",
    "mcp.*.on_crash": "If the process dies during a call: `report` that the outcome is unknown, or `retry`.",
    "mcp.*.visible": "Whether people in the space see the calls as they are written, and their results.",
    "effects.rules[].do": "What happens to a call that matches: `allow`, `ask` a person, or `deny`.",
    "cycle.phases[].tool_choice": "Whether a tool is to be called: `auto`, `required` or `none`.",
    "budget.dollars_per_day": "In one day, UTC.",
    "heartbeat.every_minutes": "The interval. It starts again with the active hours of each day.",
    "heartbeat.active_from": "When the active hours begin.",
    "heartbeat.instruction": "What the agent is told.",
    "plans[].name": "By its name a plan is known.",
    "members[].handle": "Of the member.",
}
"""The meanings of keys that have no docstring where they are defined."""

_HEAD: Final = """\
# Definition files

Agents can be written down in files, kept with your code, and applied as often as you like:

```console
$ denizen apply agents.yaml --dry-run --diff
$ denizen apply agents.yaml
```

A file is YAML 1.2 (or JSON, if its name ends with `.json`) and holds one or several documents, with `---` between them:

```yaml
name: Pat
instructions_file: pat.md
spaces:
  - Planning
goals:
  - Every feature has a spec before anyone builds it
plans:
  - name: Weekly report
    cron: 0 17 * * FRI
    instruction: Sum up the week in Planning.
---
kind: space
name: Planning
members: [pat, noor]
```

- **All or nothing.** Every problem of every file is told at once, with file, line and key, and the nearest name that
  would have been right. If there is one, nothing is applied. Otherwise everything is applied in one transaction.
- **By handle.** An agent that has the handle is changed, otherwise one is made. What is as the file says already is
  not touched: no new version, no new era. An agent that is living takes a new definition with its next cycle.
- **An agent's document is its whole definition**: a key that you remove has its default again. Spaces, goals, notes and
  plans are different, because agents change them too: what the file names is set, and what it does not name is left.
- **Spaces** are found by name. One that is missing is made, with the person who applies the file in it. Over HTTP the
  name means the space of that name that you are in; a private space that you are not in does not exist for you.
- **Places and goals** may be written in short: a text alone is the name of a space, the text of a goal, the handle of
  a member. Tools that are texts are names of Python tools.
- **Bridges** are found by handle. Their settings are those of the file; rooms that it names are connected, others stay.
  One with a secret of its own (`webhook`) is made with `denizen bridges create`, which shows the secret once.
- **Secrets do not belong in files.** Write `${NAME}` in headers and environments. What `--diff` shows is masked; what
  `--export` prints is not, as it has to say the same again.
- **Folders** stand for every `.yaml`, `.yml` and `.json` in them, and `-` for standard input.
- **Tools** that are Python functions are named here and loaded by `denizen up`: see `tools` in [settings](settings.md).
- **Restricted parts**: not everyone may define programs, private addresses, Python tools, where secrets are sent, and
  who pays. [Who may](access.md#restricted-parts-of-definitions) is the same for files as for every other way.
- `denizen apply --export HANDLE` prints an agent as a file that applies to the same thing.

From Python, `denizen.agents.apply` does the same and says what changed:

```python
from denizen import Runtime
from denizen.agents.files import DefinitionFile, read

file = DefinitionFile("agents.yaml", "name: Pat\\ninstructions: You plan.\\nspaces: [Planning]\\n")
async with Runtime() as denizen:
    noor = await denizen.people.create("Noor")
    changes = await denizen.agents.apply(read([file]), creator=noor)
    assert [(change.kind, change.name, change.action) for change in changes] == [
        ("space", "Planning", "created"),
        ("agent", "pat", "created"),
    ]
    changes = await denizen.agents.apply(read([file]), creator=noor)
    assert [change.action for change in changes] == ["unchanged"]
```

`[]` below stands for each thing of a list, `[http]` for each of `kind: http`, and `*` for each name of a mapping.
"""


def render_reference() -> str:
    """Renders the whole page."""
    sections = [
        ("Agents", AgentDocument, "`kind: agent`, which need not be said."),
        ("Spaces", SpaceDocument, "`kind: space`."),
        ("People", PersonDocument, "`kind: person`."),
        ("Bridges", BridgeDocument, "`kind: bridge`: a connection to a service elsewhere, see [bridges](bridges.md)."),
    ]
    return "\n".join([_HEAD, *(_section(*each) for each in sections)])


def _section(title: str, model: type[BaseModel], about: str) -> str:
    rows = [f"| `{path}` | {default} | {meaning} |" for path, default, meaning in keys(model)]
    return "\n".join([f"## {title}", "", about, "", "| key | default | |", "|---|---|---|", *rows, ""])


def keys(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Yields every key of such a document, with nested ones: path, default, meaning."""
    below = meanings(model)
    for name in sorted(model.model_fields, key=lambda each: _FIRST.index(each) if each in _FIRST else len(_FIRST)):
        field = model.model_fields[name]
        path = f"{prefix}{name}"
        inner = [] if name == "kind" else list(_models(field.annotation))
        meaning = MEANINGS.get(path) or below.get(name) or (_summary(inner[0][1]) if inner else "")
        yield path, _default(field), " ".join(meaning.split()).replace("|", "\\|")
        for suffix, kind in inner:
            yield from keys(kind, f"{path}{suffix if len(inner) == 1 else suffix.replace('[]', f'[{_kind(kind)}]')}.")


def _kind(model: type[BaseModel]) -> str:
    """Returns the value that distinguishes it from others in its place."""
    field = model.model_fields.get("kind")
    return str(get_args(field.annotation)[0]) if field is not None else model.__name__


def _models(annotation: Any, suffix: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """Yields the models that a value of this type may be or hold, and the suffix of the path to their keys."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield suffix, annotation
    elif origin is Annotated:
        yield from _models(arguments[0], suffix)
    elif origin in (Union, UnionType):
        for each in arguments:
            yield from _models(each, suffix)
    elif origin is dict:
        yield from _models(arguments[1], f"{suffix}.*")
    elif origin in (tuple, list):
        yield from _models(arguments[0], f"{suffix}[]")


def _default(field: Any) -> str:
    if get_origin(field.annotation) is Literal and len(get_args(field.annotation)) == 1:
        return ""
    if field.is_required():
        return "**required**"
    if field.default is PydanticUndefined:
        return ""
    default = plain(field.default)
    if default in (None, "", [], {}):
        return ""
    return f"`{', '.join(map(str, default))}`" if isinstance(default, list) else f"`{_written(default)}`"


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _summary(model: type[BaseModel]) -> str:
    return (inspect.getdoc(model) or "").split("\n\n")[0]
