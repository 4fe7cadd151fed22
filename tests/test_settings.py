"""Settings: the stronger source wins, every value knows its source, and what is wrong is said with what to write."""

from __future__ import annotations

import os
import stat
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import ValidationError

from denizen.agents.pace import Pace
from denizen.errors import SettingsError
from denizen.masking import masked
from denizen.settings.loading import LoadedSettings, export_dotenv, load, looked_for, specs
from denizen.settings.shape import Settings


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The current folder of the story; the home folder beside it is not there."""
    here = tmp_path / "here"
    here.mkdir()
    return here


def read(folder: Path, environ: dict[str, str] | None = None, **options: object) -> LoadedSettings:
    home = {"DENIZEN_HOME": str(folder.parent / "home")}
    return load(options, environ=home | (environ or {}), folder=folder)


def problems(folder: Path, environ: dict[str, str] | None = None) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as failure:
        read(folder, environ)
    assert failure.value.code == "settings_invalid"
    for problem in failure.value.problems:
        assert problem in str(failure.value)
    return failure.value.problems


def test_nothing_has_to_be_set(folder: Path) -> None:
    """Every default works on a laptop, and the database is a file in the home folder."""
    loaded = load(environ={"HOME": "/home/ada"}, folder=folder)
    assert loaded.settings.home == Path("~/.denizen").expanduser()
    assert loaded.settings.database_url == f"sqlite:///{loaded.settings.home}/denizen.db"
    assert (loaded.settings.host, loaded.settings.port) == ("127.0.0.1", 8420)
    assert loaded.settings.model is None
    assert set(loaded.origins.values()) == {"default"}


def test_the_pace_of_agents_has_the_defaults_of_the_runtime(folder: Path) -> None:
    """`denizen up` without settings and `Runtime()` behave the same."""
    assert Pace(**read(folder).settings.agents.model_dump()) == Pace()


def test_the_stronger_source_wins(folder: Path) -> None:
    """Option, environment, .env, denizen.toml, default: each gives way to the one before it."""
    (folder / "denizen.toml").write_text('port = 1\nhost = "toml.example"\nmodel = "demo"\nlog_level = "error"\n')
    (folder / ".env").write_text("\nDENIZEN_PORT=2\nDENIZEN_HOST=dotenv.example\nDENIZEN_MODEL=openai:small\n")
    loaded = read(folder, {"DENIZEN_PORT": "3", "DENIZEN_HOST": "environ.example"}, port=4)
    settings, origins = loaded.settings, loaded.origins
    assert (settings.port, origins["port"]) == (4, "option --port")
    assert (settings.host, origins["host"]) == ("environ.example", "environment DENIZEN_HOST")
    assert (settings.model, origins["model"]) == ("openai:small", ".env line 4")
    assert (settings.log_level, origins["log_level"]) == ("error", "denizen.toml line 4")
    assert (settings.log_format, origins["log_format"]) == ("console", "default")


def test_groups_are_tables_and_double_underscores(folder: Path) -> None:
    """`[agents]` in TOML and DENIZEN_AGENTS__… in the environment mean the same group."""
    (folder / "denizen.toml").write_text("[agents]\n# how warm\nwarm_seconds = 5\ngrace_seconds = 1.5\n")
    loaded = read(folder, {"DENIZEN_AGENTS__GRACE_SECONDS": "7"})
    assert (loaded.settings.agents.warm_seconds, loaded.settings.agents.grace_seconds) == (5, 7)
    assert loaded.origins["agents.warm_seconds"] == "denizen.toml [agents] line 3"
    assert loaded.origins["agents.grace_seconds"] == "environment DENIZEN_AGENTS__GRACE_SECONDS"


def test_an_option_that_was_not_given_says_nothing(folder: Path) -> None:
    """The command line hands on None for what nobody typed."""
    assert read(folder, port=None).origins["port"] == "default"


def test_a_variable_set_to_nothing_is_not_set(folder: Path) -> None:
    """Compose files and CI set variables to the empty string when they mean nothing."""
    loaded = read(folder, {"DATABASE_URL": "", "DENIZEN_PORT": ""})
    assert (loaded.origins["database_url"], loaded.settings.port) == ("default", 8420)


def test_a_toml_file_in_the_home_folder_is_the_second_choice(folder: Path) -> None:
    """One beside you is read instead of it, not with it."""
    home = folder.parent / "home"
    home.mkdir()
    (home / "denizen.toml").write_text("port = 5\n")
    loaded = read(folder)
    assert (loaded.settings.port, loaded.origins["port"]) == (5, f"{home / 'denizen.toml'} line 1")
    (folder / "denizen.toml").write_text('host = "localhost"\n')
    loaded = read(folder)
    assert (loaded.settings.port, loaded.settings.host) == (8420, "localhost")
    assert [(each.path.parent, each.found, each.used) for each in loaded.sources] == [
        (folder, False, False),
        (folder, True, True),
        (home, True, False),
    ]


def test_where_the_home_folder_is_cannot_be_said_inside_it(folder: Path) -> None:
    """A file found in the home folder that names another home contradicts itself."""
    home = folder.parent / "home"
    home.mkdir()
    (home / "denizen.toml").write_text('home = "/elsewhere"\n')
    (problem,) = problems(folder)
    assert problem.endswith("Remove the line, and set DENIZEN_HOME in the environment instead.")


def test_postgres_urls_of_both_spellings_are_one(folder: Path) -> None:
    """Hosting providers write postgres://, libraries want postgresql://."""
    assert read(folder, {"DATABASE_URL": "postgres://a@b/c"}).settings.database_url == "postgresql://a@b/c"
    assert read(folder, {"DATABASE_URL": "postgresql://a@b/c"}).settings.database_url == "postgresql://a@b/c"


def test_a_home_is_absolute_and_may_begin_with_a_tilde(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays the same folder wherever the process goes."""
    monkeypatch.setenv("HOME", "/home/ada")
    assert load(environ={"DENIZEN_HOME": "~/d"}, folder=folder).settings.home == Path("/home/ada/d")
    assert load(environ={"DENIZEN_HOME": "d"}, folder=folder).settings.home == Path.cwd() / "d"


def test_settings_cannot_be_changed() -> None:
    """What was loaded stays what it was, for everyone who holds it."""
    with pytest.raises(ValidationError):
        Settings().port = 1  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("environ", "sentence"),
    [
        ({"DENIZEN_PROT": "1"}, "In the environment: there is no setting DENIZEN_PROT. Did you mean DENIZEN_PORT?"),
        (
            {"DENIZEN_DATABASE_URL": "x"},
            "In the environment: there is no setting DENIZEN_DATABASE_URL. Did you mean DATABASE_URL?",
        ),
        (
            {"DENIZEN_WARM_SECONDS": "1"},
            "In the environment: there is no setting DENIZEN_WARM_SECONDS. Did you mean DENIZEN_AGENTS__WARM_SECONDS?",
        ),
        (
            {"DENIZEN_ZZZ": "1"},
            "In the environment: there is no setting DENIZEN_ZZZ. `denizen config` lists the variables there are.",
        ),
        (
            {"DENIZEN_PORT": "http"},
            (
                "environment DENIZEN_PORT: port is 'http'. "
                "It has to be a whole number from 0 to 65535, such as 8420 (0 takes any free port)."
            ),
        ),
        (
            {"DENIZEN_LOG_FORMAT": "xml"},
            "environment DENIZEN_LOG_FORMAT: log_format is 'xml'. It has to be console or json.",
        ),
        (
            {"REDIS_URL": "localhost:6379"},
            (
                "environment REDIS_URL: redis_url is 'localhost:6379'. "
                "It has to be the URL of one server such as redis://host:6379/0 (rediss:// for TLS, unix:// "
                "for a socket); of a cluster that of a node, and not that of a Sentinel."
            ),
        ),
    ],
)
def test_a_wrong_variable_is_told_with_what_to_write(folder: Path, environ: dict[str, str], sentence: str) -> None:
    """The sentence is all that a person needs."""
    assert problems(folder, environ) == (sentence,)


@pytest.mark.parametrize(
    ("toml", "sentence"),
    [
        ("prot = 1\n", "denizen.toml line 1: there is no key prot. Did you mean port?"),
        ("\n[agent]\nx = 1\n", "denizen.toml line 2: there is no table [agent]. Did you mean [agents]?"),
        (
            "[agents]\nwarm = 1\n\nsweep_second = 1",
            "denizen.toml line 4: there is no key sweep_second in [agents]. Did you mean sweep_seconds?",
        ),
        (
            "[agents]\nport = 1\n",
            "denizen.toml line 2: there is no key port in [agents]. Did you mean port above the first [table]?",
        ),
        (
            "warm_seconds = 1\n",
            "denizen.toml line 1: there is no key warm_seconds. Did you mean warm_seconds in [agents]?",
        ),
        (
            "port = true\n",
            (
                "denizen.toml line 1: port is True. "
                "It has to be a whole number from 0 to 65535, such as 8420 (0 takes any free port)."
            ),
        ),
        (
            "[agents]\nlease_seconds = inf\n",
            (
                "denizen.toml [agents] line 2: agents.lease_seconds is inf. "
                "It has to be a number of seconds, 1 or more, such as 30."
            ),
        ),
        (
            'openai_api_key = "sk-123456789"\n',
            (
                "denizen.toml line 1: openai_api_key does not belong in denizen.toml, which people share. "
                "Put OPENAI_API_KEY into the environment or into .env."
            ),
        ),
        (
            '# """\nmodel = """\nport = 1\n"""\nprot = 2\n',
            "denizen.toml line 5: there is no key prot. Did you mean port?",
        ),
    ],
)
def test_a_wrong_key_is_told_with_its_line(folder: Path, toml: str, sentence: str) -> None:
    """The line is that of the key, whatever stands before it."""
    (folder / "denizen.toml").write_text(toml)
    assert sentence in problems(folder)


def test_a_table_where_a_value_belongs_is_told(folder: Path) -> None:
    """[port] is a setting's name and no table."""
    (folder / "denizen.toml").write_text("[port]\nnumber = 1\n")
    assert "It has to be a whole number" in problems(folder)[0]


def test_a_value_where_a_table_belongs_is_told(folder: Path) -> None:
    (folder / "denizen.toml").write_text("agents = 3\n")
    (problem,) = problems(folder)
    assert problem.endswith("It is a table: write [agents], and its settings below that.")


def test_all_problems_are_told_at_once(folder: Path) -> None:
    """Nobody mends a file line by line by starting again and again."""
    (folder / ".env").write_text("DENIZEN_HOTS=x\n")
    (folder / "denizen.toml").write_text("port = 70000\n[agents]\nlease_seconds = 0\n")
    told = "\n".join(problems(folder, {"DENIZEN_LOG_LEVEL": "loud"}))
    assert told.count("\n") == 3
    for part in (".env line 1", "denizen.toml line 1", "denizen.toml [agents] line 3", "environment DENIZEN_LOG_LEVEL"):
        assert part in told


def test_settings_that_contradict_each_other_are_told(folder: Path) -> None:
    """Each is fine alone; together they cannot be meant."""
    environ = {"DENIZEN_AGENTS__LEASE_SECONDS": "10", "DENIZEN_AGENTS__SWEEP_SECONDS": "20"}
    (problem,) = problems(folder, environ)
    assert "sweep_seconds (20, from environment DENIZEN_AGENTS__SWEEP_SECONDS)" in problem
    assert "Make sweep_seconds the smaller one." in problem


@pytest.mark.parametrize("url", ["mysql://a/b", "denizen.db", "sqlite:denizen.db", "sqlite://denizen.db"])
def test_a_database_we_do_not_know_is_told(folder: Path, url: str) -> None:
    (problem,) = problems(folder, {"DATABASE_URL": url})
    assert "It has to be sqlite:///relative/path" in problem


@pytest.mark.parametrize("host", ["localhost:8420", "http://localhost", "a b"])
def test_a_host_is_a_host_only(folder: Path, host: str) -> None:
    (problem,) = problems(folder, {"DENIZEN_HOST": host})
    assert "without a port" in problem


@pytest.mark.parametrize("host", ["::1", "0.0.0.0", "denizen.example"])
def test_hosts_may_be_names_and_addresses(folder: Path, host: str) -> None:
    assert read(folder, {"DENIZEN_HOST": host}).settings.host == host


@pytest.mark.parametrize("model", ["gpt", "openai:", ":small"])
def test_a_model_needs_its_provider(folder: Path, model: str) -> None:
    (problem,) = problems(folder, {"DENIZEN_MODEL": model})
    assert "It has to be provider:name" in problem


def test_broken_toml_is_told_with_line_and_column(folder: Path) -> None:
    (folder / "denizen.toml").write_text("port = 1\nhost = \n")
    (problem,) = problems(folder)
    assert problem == f"{folder / 'denizen.toml'} is not valid TOML: invalid value (at line 2, column 8)."


@pytest.mark.parametrize(
    ("line", "column"), [("two words=3", 4), ('NAME="not closed', 6), ("  =3", 3), ("export a b=3", 9)]
)
def test_a_broken_dotenv_is_told_with_line_and_column(folder: Path, line: str, column: int) -> None:
    """And what it holds is not repeated: it may be a secret."""
    (folder / ".env").write_text(f"DENIZEN_PORT=9\n\n{line}\nDENIZEN_HOST=x\n")
    (problem,) = problems(folder)
    assert problem.startswith(f"{folder / '.env'} cannot be read at line 3, column {column}:")


@pytest.mark.parametrize("name", [".env", "denizen.toml"])
def test_a_file_that_is_not_text_is_told(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"# one\n# \xff\n")
    (problem,) = problems(folder)
    assert problem == f"{folder / name} is not UTF-8 text (line 2, column 3). Save it as UTF-8."


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("name", [".env", "denizen.toml"])
def test_a_file_that_may_not_be_read_is_told(folder: Path, name: str) -> None:
    (folder / name).write_text("")
    (folder / name).chmod(stat.S_IWUSR)
    (problem,) = problems(folder)
    assert "Let this user read it, or remove it." in problem


def test_a_byte_order_mark_is_no_part_of_the_first_key(folder: Path) -> None:
    """Editors on Windows put one there."""
    (folder / "denizen.toml").write_text("port = 9\n", encoding="utf-8-sig")
    (folder / ".env").write_text("DENIZEN_HOST=x\n", encoding="utf-8-sig")
    settings = read(folder).settings
    assert (settings.port, settings.host) == (9, "x")


def test_dotenv_reads_as_everyone_writes_it(folder: Path) -> None:
    """Quotes, export, comments, and names filled in from before and from the environment."""
    (folder / ".env").write_text(
        "# a comment\nexport DENIZEN_HOST='denizen.example' # and another\nWHO=ada\n"
        'DATABASE_URL="postgresql://${WHO}:${PASSWORD}@db/x"\n'
    )
    loaded = read(folder, {"PASSWORD": "pass"})
    assert loaded.settings.host == "denizen.example"
    assert loaded.settings.database_url == "postgresql://ada:pass@db/x"
    assert loaded.origins["database_url"] == ".env line 4"


def test_what_dotenv_adds_reaches_the_libraries(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of any provider may stand in .env; what the environment says itself stays."""
    monkeypatch.setenv("GROQ_API_KEY", "placeholder")
    monkeypatch.delenv("GROQ_API_KEY")
    monkeypatch.setenv("OPENAI_API_KEY", "from the environment")
    (folder / ".env").write_text("GROQ_API_KEY=from the file\nOPENAI_API_KEY=from the file\n")
    loaded = load(environ=dict(os.environ), folder=folder)
    export_dotenv(loaded)
    assert os.environ["GROQ_API_KEY"] == "from the file"
    assert os.environ["OPENAI_API_KEY"] == "from the environment"
    assert loaded.origins["openai_api_key"] == "environment OPENAI_API_KEY"


def test_secrets_are_not_shown(folder: Path) -> None:
    """Neither where values are listed, nor in what objects say of themselves, nor in an error."""
    environ = {
        "DATABASE_URL": "postgresql://ada:hunter2@db/x",
        "REDIS_URL": "redis://:hunter2@cache:6379/0",
        "OPENAI_API_KEY": "sk-hunter2hunter2",
    }
    loaded = read(folder, environ)
    shown = [str(loaded.shown(spec.name)) for spec in specs()]
    assert "postgresql://ada:•••@db/x" in shown
    assert "redis://:•••@cache:6379/0" in shown
    assert "•••" in shown
    assert "hunter2" not in "".join(shown) + repr(loaded) + str(loaded.settings)
    wrong = {"DATABASE_URL": "mysql://ada:hunter2@db/x", "REDIS_URL": "http://:hunter2@db"}
    assert "hunter2" not in "".join(problems(folder, wrong))
    assert "mysql://ada:•••@db/x" in problems(folder, wrong)[0]


def test_the_files_looked_for_are_told_even_when_they_are_wrong(folder: Path) -> None:
    """Whoever mends settings needs to know which file to open."""
    (folder / "denizen.toml").write_text("= broken")
    sources = looked_for(environ={"DENIZEN_HOME": str(folder.parent / "home")}, folder=folder)
    assert [(each.path.name, each.found) for each in sources] == [
        (".env", False),
        ("denizen.toml", True),
        ("denizen.toml", False),
    ]


def test_every_setting_says_what_it_means() -> None:
    """A field without a sentence would be an empty line in the documentation."""
    for spec in specs():
        assert spec.description.endswith("."), spec.name
        assert spec.expects, spec.name


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://a:b@c/d", "postgresql://a:•••@c/d"),
        ("postgresql://a:b@b/b@c/d", "postgresql://a:•••@c/d"),
        ("redis://localhost:6379/0", "redis://localhost:6379/0"),
        ("postgresql://c/d?user=a&password=b&x=y", "postgresql://c/d?user=a&password=•••&x=y"),
        ("Authorization: Bearer abcdefghij", "Authorization: Bearer •••"),
        ("the key sk-proj-abc_DEF-123 is wrong", "the key sk-••• is wrong"),
        ("a risk-free desk-top", "a risk-free desk-top"),
    ],
)
def test_secrets_in_text_are_masked_and_the_rest_is_not(text: str, shown: str) -> None:
    assert masked(text) == shown


def test_tools_are_a_list_or_a_text_with_commas(folder: Path) -> None:
    """In denizen.toml one, in the environment the other."""
    (folder / "denizen.toml").write_text('tools = ["tools.py", "acme.tools"]\n')
    loaded = read(folder)
    assert (loaded.settings.tools, loaded.shown("tools")) == (("tools.py", "acme.tools"), "tools.py, acme.tools")
    assert read(folder, {"DENIZEN_TOOLS": " a.py , b.c,"}).settings.tools == ("a.py", "b.c")
    (folder / "denizen.toml").write_text("tools = [1]\n")
    (problem,) = problems(folder)
    assert problem.startswith("denizen.toml line 1: tools is [1]. It has to be a list of files or modules")


def test_functions_are_tables_of_names(folder: Path) -> None:
    (folder / "denizen.toml").write_text('[functions.steps]\ncareful = "lib/steps.py:careful"\n')
    loaded = read(folder, {"DENIZEN_FUNCTIONS__STOPS": '{"booked": "acme.cycles:booked"}'})
    functions = loaded.settings.functions
    assert (functions.steps, functions.stops) == ({"careful": "lib/steps.py:careful"}, {"booked": "acme.cycles:booked"})
    (folder / "denizen.toml").write_text('[functions.steps]\ncareful = "steps.py"\n')
    (problem,) = problems(folder)
    assert "functions.steps is {'careful': 'steps.py'}. It has to be a table of names with functions" in problem


def test_prices_are_a_table_of_models(folder: Path):
    """Named as an agent names them, dots and colons included; in the environment the table is JSON."""
    (folder / "denizen.toml").write_text(
        '[prices]\n"ollama:llama3.2" = { input = 0, output = 0.5 }\n'
        '"mine:big" = { input = 1, output = 2, cached = 0.1 }\n'
    )
    loaded = read(folder)
    assert loaded.settings.prices["ollama:llama3.2"].output == Decimal("0.5")
    assert loaded.settings.prices["mine:big"].cached == Decimal("0.1")
    assert loaded.shown("prices") == "ollama:llama3.2, mine:big"
    said = read(folder, {"DENIZEN_PRICES": '{"mine:big": {"input": 3, "output": 4}}'})
    assert list(said.settings.prices) == ["mine:big"]


@pytest.mark.parametrize("table", ['"m" = 3', '"m" = { input = -1, output = 1 }', '"m" = { inputs = 1, output = 1 }'])
def test_a_price_that_is_none_is_told_with_its_place(folder: Path, table: str):
    (folder / "denizen.toml").write_text(f"[prices]\n{table}\n")
    (problem,) = problems(folder)
    assert problem.startswith("denizen.toml line 1: prices is ")
    assert "It has to be a table such as" in problem
