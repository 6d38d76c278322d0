"""Settings: layers, checks, and problems that name key, file and line (M3, M6, M29, B22, case 28)."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from marextui.settings import Settings, SettingsProblem, chosen_keys, load_settings, settings_table, write_setting
from marextui.settings_schema import SCHEMA
from marextui.settings_toml import layout


class Files:
    """A user's and a project's settings file."""

    def __init__(self, folder: Path) -> None:
        self.user = folder / "conf" / "config.toml"
        self.project = folder / "proj" / ".marex" / "config.toml"
        for path in (self.user, self.project):
            path.parent.mkdir(parents=True)

    def load(
        self, user: str = "", project: str = "", env: Mapping[str, str] | None = None
    ) -> tuple[Settings, tuple[SettingsProblem, ...]]:
        self.user.write_text(user)
        self.project.write_text(project)
        return load_settings(self.user, self.project, env or {})


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_nothing_set(tmp_path: Path) -> None:
    assert load_settings(tmp_path / "none.toml", None, {}) == (Settings(), ())


def test_schema_and_settings_agree() -> None:
    declared = {s.key: s.default for s in SCHEMA}
    assert declared == dataclasses.asdict(Settings())
    assert [f.name for f in dataclasses.fields(Settings)] == list(declared)


def test_layers_lie_over_one_another(files: Files) -> None:
    settings, problems = files.load(
        user='model = "user"\nbash_timeout = 60\nmouse = false\n[keys]\n"app.quit" = "ctrl+q"\n',
        project='model = "project"\nwindow = 16_000\n',
        env={"MAREX_MODEL": "env", "MAREX_ASCII": "on"},
    )
    assert problems == ()
    assert settings == Settings(
        model="env", bash_timeout=60, mouse=False, window=16000, ascii=True, keys={"app.quit": "ctrl+q"}
    )


def test_aliases_of_the_sources(files: Files) -> None:
    settings, problems = files.load(user="compactAt = 0.5\nautoCompress = false\nomitAfterTurns = 0\n")
    assert (settings.compact_at, settings.auto_compress, settings.omit_after_turns) == (0.5, False, 0)
    assert problems == ()
    settings, problems = files.load(env={"compactAt": "0.9", "autoCompress": "no", "omitAfterTurns": "2"})
    assert (settings.compact_at, settings.auto_compress, settings.omit_after_turns) == (0.9, False, 2)
    assert problems == ()
    settings, _ = files.load(env={"MAREX_COMPACT_AT": "0.7", "compactAt": "0.9"})
    assert settings.compact_at == 0.7
    settings, problems = files.load(user="compact_at = 0.5\ncompactAt = 0.6\n")
    assert settings.compact_at == 0.5
    assert [(p.key, p.where.rpartition("/")[2]) for p in problems] == [("compact_at", "config.toml:2")]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("compact_at = 65", "write 0.65 for 65 %"),
        ("compactAt = 65", "compactAt is a fraction"),
        ("compact_at = 1.0", "above 0 and below 1"),
        ("compact_at = 0", "above 0 and below 1"),
        ("compact_at = nan", "must be a number"),
        ('compact_at = "0.65"', "without quotes"),
        ("window = 0", "above 0"),
        ("window = -5", "above 0"),
        ("window = 8192.0", "whole number of tokens"),
        ('window = "8192"', "without quotes"),
        ("window = true", "whole number"),
        ("max_output = 0", "above 0"),
        ("local_window = 0", "above 0"),
        ("omit_after_turns = -1", "0 or more"),
        ("temperature = 3", "between 0 and 2"),
        ("auto_compress = 1", "true or false"),
        ("theme = ''", "blank"),
        ("theme = 5", "text in quotes"),
        ("base_url = 'ftp://x'", "http://"),
        ("base_url = 'localhost:8080'", "http://"),
        ("memory_retention_days = -1", "whole number of days"),
        ("memory_retention_days = 1.5", "whole number of days"),
        ("keys = 5", "must be a table"),
    ],
)
def test_a_wrong_value_names_key_file_and_line_and_the_default_holds(files: Files, line: str, says: str) -> None:
    settings, problems = files.load(user=f"# mine\n\nmouse = false\n{line}\n")
    assert settings == Settings(mouse=False)
    assert len(problems) == 1
    spelled = line.partition(" ")[0]
    assert problems[0].key == spelled.replace("compactAt", "compact_at")
    assert problems[0].where.endswith("config.toml:4")
    assert problems[0].message.startswith(spelled)
    assert says in problems[0].message


def test_a_wrong_value_leaves_the_layer_below(files: Files) -> None:
    settings, problems = files.load(user="bash_timeout = 60", env={"MAREX_BASH_TIMEOUT": "soon"})
    assert settings.bash_timeout == 60
    assert [(p.key, p.where) for p in problems] == [("bash_timeout", "environment MAREX_BASH_TIMEOUT")]
    assert problems[0].message.endswith("60 is used.")


@pytest.mark.parametrize("value", ["", "  ", "abc", "-3", "7.5"])
def test_retention_that_is_no_number_of_days_is_30_with_one_warning(files: Files, value: str) -> None:
    settings, problems = files.load(env={"MAREX_MEMORY_RETENTION_DAYS": value})
    assert settings.memory_retention_days == 30
    assert [p.key for p in problems] == ["memory_retention_days"]
    assert "30 is used" in problems[0].message


@pytest.mark.parametrize(("value", "days"), [("7", 7), ("0", 0), (" 90 ", 90)])
def test_retention_from_the_environment(files: Files, value: str, days: int) -> None:
    settings, problems = files.load(env={"MAREX_MEMORY_RETENTION_DAYS": value})
    assert (settings.memory_retention_days, problems) == (days, ())
    settings, problems = files.load(user=f"memory_retention_days = {days}")
    assert (settings.memory_retention_days, problems) == (days, ())


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("MAREX_COMPACT_AT", "65", "write 0.65"),
        ("MAREX_WINDOW", "8k", "whole number of tokens"),
        ("MAREX_WINDOW", "0", "above 0"),
        ("MAREX_TEMPERATURE", "warm", "must be a number"),
        ("MAREX_MOUSE", "maybe", "on or off"),
        ("MAREX_KEYS", "x", "only in the settings file"),
    ],
)
def test_wrong_environment(files: Files, name: str, value: str, says: str) -> None:
    settings, problems = files.load(env={name: value})
    assert settings == Settings()
    assert [p.where for p in problems] == [f"environment {name}"]
    assert says in problems[0].message


def test_unknown_keys_suggest_the_closest(files: Files) -> None:
    settings, problems = files.load(
        user="themes = 'x'\nzzz = 1\n[window_size]\nx = 1\n",
        env={"MAREX_THEMES": "x", "MAREX_HOME": "/x", "MAREX_UNRELATED": "1", "PATH": "/bin"},
    )
    assert settings == Settings()
    assert [(p.key, p.where.rpartition("/")[2]) for p in problems] == [
        ("themes", "config.toml:1"),
        ("zzz", "config.toml:2"),
        ("window_size", "config.toml:3"),
        ("MAREX_THEMES", "environment MAREX_THEMES"),
    ]
    assert "did you mean theme?" in problems[0].message
    assert "did you mean" not in problems[1].message
    assert "did you mean MAREX_THEME?" in problems[3].message


def test_a_project_cannot_redirect_a_key_or_run_a_program(files: Files) -> None:
    settings, problems = files.load(
        project="""api_key = "stolen"
base_url = "https://evil.example"
editor = "rm -rf ~"
pager = "evil"
keys = { "permission.allow" = "a" }
model = "weights/evil.GGUF"
theme = "marex-light"
"""
    )
    assert settings == Settings(theme="marex-light")
    assert [(p.key, p.where) for p in problems] == [
        (key, f".marex/config.toml:{n}")
        for n, key in enumerate(["api_key", "base_url", "editor", "pager", "keys", "model"], 1)
    ]
    assert all("your own settings file" in p.message for p in problems)
    assert "stolen" not in str(problems)


def test_variables_of_other_programs_count_least(files: Files) -> None:
    env = {"OPENAI_API_KEY": "sk-other", "OPENAI_BASE_URL": "https://other.example/v1"}
    settings, problems = files.load(env=env)
    assert (settings.api_key, settings.base_url, problems) == ("sk-other", "https://other.example/v1", ())
    settings, _ = files.load(user="api_key = 'mine'\nbase_url = 'http://127.0.0.1:1'\n", env=env)
    assert (settings.api_key, settings.base_url) == ("mine", "http://127.0.0.1:1")
    settings, _ = files.load(env={"OPENAI_API_KEY": "  "})
    assert settings.api_key == ""


def test_a_key_is_never_shown(files: Files) -> None:
    settings, problems = files.load(user="api_key = 1234567890")
    assert "1234567890" not in str(problems)
    assert "secret" not in repr(dataclasses.replace(settings, api_key="secret"))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("mouse = false\ntheme = \n", 2),
        ("a = 1\nb = 2\na = 3\n", 3),
        ('x = """never closed\n\n', 2),
    ],
)
def test_a_syntax_error_names_its_line_and_the_app_starts(files: Files, text: str, line: int) -> None:
    settings, problems = files.load(user=text, project="theme = 'p'")
    assert settings == Settings(theme="p")
    assert len(problems) == 1
    assert problems[0].key == ""
    assert problems[0].where.endswith(f"config.toml:{line}")


def test_files_that_cannot_be_read(files: Files) -> None:
    files.user.write_bytes(b"mouse = false\ntheme = '\xff'\n")
    settings, problems = load_settings(files.user, files.project, {})
    assert settings == Settings()
    assert problems[0].where.endswith("config.toml:2")
    assert "UTF-8" in problems[0].message
    files.user.unlink()
    files.user.mkdir()
    settings, problems = load_settings(files.user, None, {})
    assert settings == Settings()
    assert "cannot be read" in problems[0].message


def test_byte_order_mark_and_crlf(files: Files) -> None:
    files.user.write_bytes(b"\xef\xbb\xbfmouse = false\r\nwindow = 0\r\n")
    settings, problems = load_settings(files.user, None, {})
    assert settings == Settings(mouse=False)
    assert problems[0].where.endswith("config.toml:2")


def test_home_is_shortened_in_messages(private_home: Path) -> None:
    path = private_home / ".config" / "config.toml"
    path.parent.mkdir()
    path.write_text("zzz = 1")
    assert load_settings(path, None, {})[1][0].where == "~/.config/config.toml:1"


def test_keys_of_a_table(files: Files) -> None:
    settings, problems = files.load(
        user='mouse = true\n\n[keys]\n"app.quit" = "ctrl+q"\napp.help = "f1"\nchat.send = 5\n"x.y" = false\n'
    )
    assert settings.keys == {"app.quit": "ctrl+q", "app.help": "f1"}
    assert [(p.key, p.where.rpartition("/")[2]) for p in problems] == [
        ("keys.chat.send", "config.toml:6"),
        ("keys.x.y", "config.toml:7"),
    ]


TRICKY = '''# comment = "no"
title = """
theme = "inside a text"
[not.a.table]
"""
list = [
  "a", # window = 1
  "]", [1, 2],
]
'single' = 'it # is'  # trailing
  "quo\\"ted"   =  1
inline = { a = "}", b = [1] }
dotted . key = 2
[table]
theme = "x"
[[many]]
theme = "y"
'''


def test_where_values_stand() -> None:
    found = layout(TRICKY)
    raw = tomllib.loads(TRICKY)
    lines = {".".join(path): place.line for path, place in found.places.items()}
    assert lines["title"] == 2
    assert lines["list"] == 6
    assert lines["single"] == 10
    assert lines["inline"] == 12
    assert lines["dotted.key"] == 13
    assert found.headers == {("table",): 14, ("many",): 16}
    assert found.line_of(("table", "gone")) == 14
    assert lines["table.theme"] == 15
    assert lines["many.theme"] == 17
    assert "theme" not in lines
    assert "window" not in lines
    assert "not.a.table" not in lines
    for key in ("title", "list", "single", "inline"):
        place = found.places[(key,)]
        assert tomllib.loads(f"v = {TRICKY[place.start : place.end]}")["v"] == raw[key]
    assert found.line_of(("inline", "a")) == 12
    assert found.line_of(("nowhere",)) is None
    assert TRICKY[found.top_end :].startswith("[table]")


def test_write_setting_keeps_everything_else(files: Files) -> None:
    files.user.write_text('# my settings\ntheme = \'old\' # nice\n\n[keys]\n"app.quit" = "ctrl+q"\n')
    write_setting(files.user, "theme", 'new "one"')
    write_setting(files.user, "model", "qwen")
    write_setting(files.user, "compact_at", 0.5)
    assert files.user.read_text() == (
        '# my settings\ntheme = "new \\"one\\"" # nice\nmodel = "qwen"\ncompact_at = 0.5\n\n'
        '[keys]\n"app.quit" = "ctrl+q"\n'
    )
    settings, problems = load_settings(files.user, None, {})
    assert problems == ()
    assert (settings.theme, settings.model, settings.compact_at) == ('new "one"', "qwen", 0.5)
    write_setting(files.user, "theme", None)
    write_setting(files.user, "window", None)
    assert files.user.read_text().startswith("# my settings\nmodel = ")


def test_write_setting_keeps_the_spelling_of_an_alias_and_line_ends(files: Files) -> None:
    files.user.write_bytes(b"compactAt = 0.5\r\nmouse = true")
    write_setting(files.user, "compact_at", 0.7)
    write_setting(files.user, "ascii", True)
    assert files.user.read_bytes() == b"compactAt = 0.7\r\nmouse = true\r\nascii = true\r\n"


def test_write_setting_replaces_a_value_of_many_lines(files: Files) -> None:
    files.user.write_text('model = """a\nb""" # c\n[keys]\n')
    write_setting(files.user, "model", "x")
    assert files.user.read_text() == 'model = "x" # c\n[keys]\n'


def test_write_setting_makes_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config.toml"
    write_setting(path, "api_key", "sk-1")
    assert path.read_text() == 'api_key = "sk-1"\n'
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_write_setting_refuses_what_would_not_load(files: Files) -> None:
    files.user.write_text("mouse = true\n")
    for key, value in (("compact_at", 65), ("zzz", 1), ("keys", "x"), ("window", "8192"), ("base_url", "x")):
        with pytest.raises(ValueError, match=key):
            write_setting(files.user, key, value)
    assert files.user.read_text() == "mouse = true\n"
    files.user.write_text("mouse = \n")
    with pytest.raises(ValueError, match="correct it first"):
        write_setting(files.user, "mouse", True)
    assert files.user.read_text() == "mouse = \n"
    files.user.write_text("[theme]\nname = 'x'\n")
    with pytest.raises(ValueError, match="is a table there"):
        write_setting(files.user, "theme", "x")
    assert files.user.read_text() == "[theme]\nname = 'x'\n"


def test_settings_table_has_every_key_and_its_help() -> None:
    rows = settings_table()
    assert [row[0] for row in rows] == [s.key for s in SCHEMA]
    assert ("compact_at", "number", "0.65", "fraction") in [row[:4] for row in rows]
    assert ("window", "whole number", "", "tokens") in [row[:4] for row in rows]
    assert all(row[4] and "|" not in row[4] for row in rows)


def test_a_borrowed_key_is_not_sent_to_another_server(tmp_path: Path) -> None:
    """OPENAI_API_KEY in the shell must not leak to the local server of the settings file."""
    file = tmp_path / "config.toml"
    file.write_text('base_url = "http://127.0.0.1:8080/v1"\n')
    env = {"OPENAI_API_KEY": "sk-test"}
    assert load_settings(file, None, env)[0].api_key == ""
    assert load_settings(tmp_path / "none.toml", None, env)[0].api_key == "sk-test"
    both = {**env, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    assert load_settings(tmp_path / "none.toml", None, both)[0].api_key == "sk-test"


def test_a_strategy_nobody_knows_is_named_and_the_default_used(files: Files) -> None:
    """P4: opaque is not offered."""
    settings, problems = files.load(user='compactStrategy = "opaque"\nbeside_tokens = 0\n')
    assert settings.compact_strategy == "anchored"
    assert settings.beside_tokens == 0
    [problem] = problems
    assert problem.where.endswith(":1")
    assert problem.message == ('compactStrategy must be anchored or regenerative, not "opaque"; anchored is used.')


ON = ["on", "1", "true", "yes", "oui", "ON", " Oui ", "True"]
OFF = ["", "off", "0", "false", "no", "non", "  "]


@pytest.mark.parametrize("value", ON)
@pytest.mark.parametrize("key", ["compact_continuation", "proj_snapshot", "prewarm"])
def test_switches_for_local_engines_on(files: Files, key: str, value: str) -> None:
    """L1, L30, B22: in the file and in the environment, in both spellings; case and blanks do not count."""
    want: object = "on" if key == "prewarm" else True
    for loaded in (
        files.load(user=f'{key} = "{value}"'),
        files.load(project=f'{key.upper()} = "{value}"'),
        files.load(env={key.upper(): value}),
        files.load(env={f"MAREX_{key.upper()}": value}),
        files.load(user=f"{key} = true"),
        files.load(user=f"{key} = 1"),
    ):
        assert (getattr(loaded[0], key), loaded[1]) == (want, ())


@pytest.mark.parametrize("value", [*OFF, "x", "full", "onn", "-1"])
@pytest.mark.parametrize("key", ["compact_continuation", "proj_snapshot"])
def test_any_other_value_switches_off(files: Files, key: str, value: str) -> None:
    """L1: anything else is off, whatever stood before; only a word we do not know is worth a remark."""
    for settings, problems in (
        files.load(user=f'{key} = "{value}"'),
        files.load(user=f"{key} = true", env={key.upper(): value}),
    ):
        assert getattr(settings, key) is False
        assert [p.key for p in problems] == ([] if value in OFF else [key])


@pytest.mark.parametrize(
    ("value", "want"), [("", "off"), ("off", "off"), ("x", "off"), ("full", "full"), (" FULL ", "full"), ("1", "on")]
)
def test_prewarm_has_three_positions(files: Files, value: str, want: str) -> None:
    """L30."""
    assert files.load(user="prewarm = true", env={"PREWARM": value})[0].prewarm == want
    assert files.load(user=f'prewarm = "{value}"')[0].prewarm == want
    assert files.load(user="prewarm = 2.5")[0].prewarm == "off"


def test_switches_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    write_setting(path, "prewarm", "full")
    write_setting(path, "compact_continuation", True)
    settings, problems = load_settings(path, None, {})
    assert (settings.prewarm, settings.compact_continuation, problems) == ("full", True, ())
    with pytest.raises(ValueError, match="on, full or off"):
        write_setting(path, "prewarm", "hot")


def test_a_trigger_and_what_it_is_a_share_of(files: Files) -> None:
    """P12–P15: the sources' spellings too; what nobody knows is named."""
    text = 'compactTrigger = "sliding"\nkeep_turns = 4\nslide_by = 0\ncompact_base = "window"\n'
    settings, problems = files.load(user=text, env={"MAREX_COMPACT_TRIGGER": "Sliding"})
    assert (settings.compact_trigger, settings.keep_turns, settings.compact_base) == ("sliding", 4, "window")
    assert settings.slide_by == Settings().slide_by
    assert [p.message for p in problems] == [
        "slide_by must be above 0, not 0; 3 is used.",
        'MAREX_COMPACT_TRIGGER must be threshold, sliding or task, not "Sliding"; sliding is used.',
    ]


def test_sections_are_a_list_in_order(files: Files) -> None:
    """P7: from a file as a list, from the environment with commas."""
    listed = 'summary_sections = ["Goals", "Sources: each page read", "Open Questions"]\n'
    settings, problems = files.load(user=listed)
    assert settings.summary_sections == ("Goals", "Sources: each page read", "Open Questions")
    assert problems == ()
    settings, problems = files.load(user=listed, env={"MAREX_SUMMARY_SECTIONS": "Session Intent, Findings"})
    assert settings.summary_sections == ("Session Intent", "Findings")
    assert problems == ()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('summary_sections = ["Next Stps"]', 'summary_sections names "Next Stps", which is no known section'),
        ("summary_sections = 3", "summary_sections must be a list of texts in square brackets, not 3"),
        ("summarySections = [1]", "summarySections must be a list of texts in square brackets, not [1]"),
    ],
)
def test_a_section_nobody_knows_is_named_and_the_default_list_used(files: Files, line: str, reason: str) -> None:
    """P7: the application still starts."""
    settings, problems = files.load(user=f"mouse = false\n{line}\n")
    assert settings.summary_sections == Settings().summary_sections
    assert settings.mouse is False
    [problem] = problems
    assert problem.where.endswith(":2")
    assert problem.message.startswith(reason)
    assert problem.message.endswith(
        "; Session Intent, Files Modified, Decisions Made, Current State, Next Steps are used."
    )


@pytest.mark.parametrize(
    ("env", "ascii_only"),
    [
        ({"LANG": "C"}, True),
        ({"LC_ALL": "POSIX", "LANG": "de_DE.UTF-8"}, True),
        ({"TERM": "linux", "LANG": "de_DE.UTF-8"}, True),
        ({"TERM": "dumb"}, True),
        ({"LANG": "C.UTF-8", "TERM": "xterm-256color"}, False),
        ({"LC_ALL": "en_GB.UTF-8", "LANG": "C"}, False),
        ({}, False),
        ({"LANG": "C", "MAREX_ASCII": "no"}, False),
    ],
)
def test_a_terminal_that_cannot_draw_more_gets_ascii_unless_it_is_set(
    files: Files, env: Mapping[str, str], ascii_only: bool
) -> None:
    assert files.load(env=env)[0].ascii is ascii_only
    opposite = f"ascii = {'false' if ascii_only else 'true'}\n"
    assert files.load(opposite, env={k: v for k, v in env.items() if k != "MAREX_ASCII"})[0].ascii is not ascii_only


def test_what_a_person_has_chosen_is_known_whatever_it_is(tmp_path: Path) -> None:
    """Who has chosen is not asked again, also who chose what is the default; what is not meant for us is no choice."""
    mine, project = tmp_path / "config.toml", tmp_path / "p" / "config.toml"
    project.parent.mkdir()
    assert chosen_keys(mine, project, {"OPENAI_API_KEY": "k"}) == frozenset()
    mine.write_text('PREWARM = "off"\nnot_a_key = 1\n')
    project.write_text("window = 4096\n")
    found = chosen_keys(mine, project, {"COMPACT_CONTINUATION": "nonsense", "MAREX_MOUSE": "off"})
    assert found == {"prewarm", "window", "compact_continuation", "mouse"}
    write_setting(mine, "proj_snapshot", False)
    assert "proj_snapshot" in chosen_keys(mine, None, {})
