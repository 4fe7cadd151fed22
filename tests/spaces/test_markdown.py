from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from denizen.spaces import markdown
from denizen.spaces.markdown import Rendered, render

DOCUMENT = """\
# Release *two*

Hello **Noor**, see [the notes](https://notes.example/2) and <https://status.example>,
or write to [ops@corp.example](mailto:ops@corp.example). ~~Not~~ `print("@x")` ![a chart](chart.png)

> We ship
> on Friday.
>
> - first
> - second

1. Build
   ```python
   @tool
   def build(): ...
   ```
2. Test
   - unit
   - *crash*
3. Ship

| who  | what |
|------|:----:|
| @Ada | **docs** |
| Noor | tests |

---

    indented code

Tom &amp; Jerry, 2 \\* 3 = 6
"""

PLAIN = """\
Release two

Hello Noor, see the notes (https://notes.example/2) and https://status.example,
or write to ops@corp.example. Not print("@x") a chart

> We ship
> on Friday.
>
> - first
> - second

1. Build
   @tool
   def build(): ...
2. Test
   - unit
   - crash
3. Ship

who | what
@Ada | docs
Noor | tests

---

indented code

Tom & Jerry, 2 * 3 = 6"""


def test_a_whole_document_reads_well_as_plain_text():
    assert render(DOCUMENT) == Rendered(PLAIN, ("ada",))


@pytest.mark.parametrize(
    ("source", "plain"),
    [
        ("", ""),
        ("Just words.", "Just words."),
        ("One\nline after\n\nanother", "One\nline after\n\nanother"),
        ("  spaces around  \n\n\n\nlines \n", "spaces around\n\nlines"),
        ("Windows\r\nlines\r", "Windows\nlines"),
        ("[](https://a.example)", "https://a.example"),
        ("[https://a.example](https://a.example/)", "https://a.example"),
        ("[bücher](https://bücher.example/ä)", "bücher (https://bücher.example/ä)"),
        ("[click](javascript:alert)", "[click](javascript:alert)"),
        ("![](x.png)", "image"),
        ("![*the* plan](x.png)", "the plan"),
        ("a <b>bold</b> tag", "a <b>bold</b> tag"),
        ("* a\n* b\n\nafter", "- a\n- b\n\nafter"),
        ("* a\n\n* b", "- a\n\n- b"),
        ("-\n- b", "-\n- b"),
        ("7) seven\n8) eight", "7. seven\n8. eight"),
        ("> quoted\n\nanswer", "> quoted\n\nanswer"),
        ("> > deep", "> > deep"),
        ("```\ncode  \n\n  more\n```", "code\n\n  more"),
        ("snake_case and 2 < 3", "snake_case and 2 < 3"),
    ],
)
def test_each_construct_has_its_plain_form(source: str, plain: str):
    assert render(source).plain == plain


@pytest.mark.parametrize(
    ("source", "mentions"),
    [
        ("@ada, @Noor.Amin! And @ada again.", ("ada", "noor.amin")),
        ("(@ada)/@noor: **@husam** [@team](https://a.example/@x)", ("ada", "noor", "husam", "team")),
        ("_@ada_ ~~@noor~~ @snake_case", ("ada", "noor", "snake_case")),
        ("`@ada` and\n\n```\n@noor\n```\n\n    @husam", ()),
        (r"\@ada &#64;noor", ()),
        ("ada@corp.example noor+x@corp.example mailto:@ada", ()),
        ("https://a.example/@ada www.b.example/@noor c.example/@husam", ()),
        ("<https://a.example/@ada> <noor@corp.example> ![@husam](x.png)", ()),
        ("@ada@social.example @@noor @é @-x @", ()),
        ("@adaé", ()),
        ("ada*x*@corp.example", ()),
        (f"@{'a' * 40} @{'b' * 41}", ("a" * 40,)),
        ("> - | @ada |\n\nDone.@noor", ("ada", "noor")),
    ],
)
def test_mentions_are_found_only_where_someone_is_addressed(source: str, mentions: tuple[str, ...]):
    assert render(source).mentions == mentions


def test_a_text_beyond_the_limit_is_its_own_plain_text():
    source = "**@ada** " * 3_000

    assert len(source) > markdown.MAX_CHARS
    assert render(source) == Rendered(source, ("ada",))


ODD = st.characters()
"""Any character at all, lone surrogates included."""
# fmt: off
PIECES = st.sampled_from([
    *"abz09 \n@.-_+=#>)(!:;'\"/\\`*~[]<>&|\t\r\0", "  ", "\n\n\n", "\n- ", "\n1. ", "\n> ", "\n    ", "\n```\n",
    "@ada", "www.", "://", "mailto:", "![", "|-|\n", "&amp;", "\u00a0", "\u2028", "\x85", "\x1c", "é", "\n===",
    "\n\n", "[a](b)", "[a](/@ada)", "<http://a.b/@ada>",
])
# fmt: on
SOURCES = st.lists(st.one_of(PIECES, ODD), max_size=40).map("".join)
PLAIN_PIECES = st.sampled_from(
    [*"ab1 \n@.,-:/()!?'\"=+#%é", "\n\n", "@ada ", "\u00a0", "\u2028", "\ufeff", "۱", "12. "]
)
PLAIN_SOURCES = st.lists(st.one_of(PLAIN_PIECES, PIECES), max_size=25).map("".join)


@given(st.one_of(PLAIN_SOURCES, SOURCES))
@example("a\n\u00a0b")
@example("a\n12) b")
@example("a\u2028- b")
def test_the_fast_path_gives_what_the_parser_gives(source: str):
    assert render(source) == markdown._render_parsed(source)  # pyright: ignore[reportPrivateUsage]


@given(st.text(alphabet=st.sampled_from("ab,.?! @\n"), min_size=1, max_size=60))
def test_ordinary_text_takes_the_fast_path(source: str):
    """Otherwise the property above would hold for a fast path that is never taken."""
    lines = [line.strip() for line in source.split("\n") if line.strip()]
    text = "\n".join(lines)

    assert not markdown._SIGNIFICANT.search(f"\n{text}\n") or not text  # pyright: ignore[reportPrivateUsage]


@given(SOURCES)
def test_nothing_makes_it_fail(source: str):
    rendered = render(source)

    assert len(set(rendered.mentions)) == len(rendered.mentions)
    assert all(handle == handle.lower() and 1 <= len(handle) <= 40 for handle in rendered.mentions)


@pytest.mark.parametrize(
    "piece", ["[", "![", "> ", "- ", ">- ", "*", "**a ", "`", "<", "[a](", "  - a\n", "|", "((", "@a."]
)
def test_huge_nesting_is_survived(piece: str):
    deep = "\n".join(" " * 2 * depth + "- " + piece for depth in range(60))

    for source in (piece * (2_000 // len(piece)), deep):
        assert len(render(source).plain) <= 25 * len(source)
