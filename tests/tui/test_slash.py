"""What is a command and what is text; completion of commands and files."""

from __future__ import annotations

import pytest

from marextui.tui import completion, slash
from marextui.tui.actions import slash_commands

COMMANDS = slash_commands()


def test_every_command_of_the_issue_exists() -> None:
    wanted = {"help", "status", "context", "compact", "memory", "model", "new", "resume", "rename", "copy", "export"}
    assert set(COMMANDS) >= wanted | {"theme", "quit", "memory clear"}


@pytest.mark.parametrize(
    ("text", "action", "argument"),
    [
        ("/help", "app.help", ""),
        ("/HELP  ", "app.help", ""),
        ("/rename  A new title", "app.rename", "A new title"),
        ("/memory", "app.focus_memory", ""),
        ("/memory clear", "app.memory_clear", ""),
        ("/export out.json", "app.export", "out.json"),
    ],
)
def test_commands(text: str, action: str, argument: str) -> None:
    parsed = slash.parse(text, COMMANDS)
    assert isinstance(parsed, slash.Command)
    assert (parsed.action.id, parsed.argument) == (action, argument)


@pytest.mark.parametrize(
    "text",
    ["/usr/bin is full", "/etc.d", "/", "// comment", " /help", "/help\nme", "/help2", "say /help", "", "/1"],
)
def test_text_is_sent_as_text(text: str) -> None:
    assert slash.parse(text, COMMANDS) is None


def test_an_unknown_command_is_named_with_what_may_be_meant() -> None:
    parsed = slash.parse("/modl x", COMMANDS)
    assert isinstance(parsed, slash.Unknown)
    assert parsed.name == "modl"
    assert "model" in parsed.near


def test_completion_follows_what_is_typed() -> None:
    assert {a.slash for a in slash.completions("/me", COMMANDS)} == {"memory", "memory clear"}
    assert [a.slash for a in slash.completions("/memory c", COMMANDS)] == ["memory clear"]
    assert len(slash.completions("/", COMMANDS)) == len(COMMANDS)
    assert [a.slash for a in slash.completions("/mdl", COMMANDS)] == ["model"]
    for text in ("", "help", "/usr/bin", "/help\n", "/rename x"):
        assert slash.completions(text, COMMANDS) == [], text


FILES = ("README.md", "src/app.py", "src/app_test.py", "docs/application/guide.md")


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("app", "src/app.py"),
        ("readme", "README.md"),
        ("gui", "docs/application/guide.md"),
        ("satest", "src/app_test.py"),
    ],
)
def test_fuzzy_puts_the_meant_file_first(query: str, best: str) -> None:
    assert completion.fuzzy(query, FILES)[0] == best


def test_fuzzy_leaves_out_what_does_not_match() -> None:
    assert completion.fuzzy("zzz", FILES) == []
    assert completion.score("", "anything") == 0


@pytest.mark.parametrize(
    ("before", "query"),
    [("@", ""), ("see @src/a", "src/a"), ("(@x", "x"), ("me@host", None), ("@a b", None), ("", None)],
)
def test_the_word_at_the_cursor(before: str, query: str | None) -> None:
    assert completion.file_query(before) == query


def test_completing_keeps_what_stands_before() -> None:
    assert completion.with_file("see @ap", "src/app.py") == "see @src/app.py "
    assert completion.with_file("@x", "a b.txt") == '@"a b.txt" '


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ("a b.txt", '@"a b.txt" '),
        ("été/日本.md", "@été/日本.md "),
        ("-rf", "@-rf "),
        ('say "hi".txt', "@'say \"hi\".txt' "),
        ("it's.txt", '@"it\'s.txt" '),
        ("""both "and' here""", """@both "and' here """),
        ("a\u00a0b", '@"a\u00a0b" '),
    ],
)
def test_odd_file_names_are_written_so_that_their_end_is_seen(path: str, written: str) -> None:
    assert completion.with_file("@x", path) == written


@pytest.mark.parametrize(
    ("path", "can"),
    [("a b", True), ("日本", True), ("a\nb", False), ("a\x1b[2J", False), ("caf\udce9", False), ("a\u202eb", False)],
)
def test_names_that_no_line_can_hold_are_not_offered(path: str, can: bool) -> None:
    assert completion.writable(path) is can


@pytest.mark.parametrize(
    ("text", "name", "excess"),
    [
        ("/new fix the parser", "new", "fix the parser"),
        ("/quit smoking is hard", "quit", "smoking is hard"),
        ("/memory clears my mind", "memory", "clears my mind"),
        ("/context check it", "context check", "it"),
        ("/compact  preview   now", "compact preview", "now"),
    ],
)
def test_words_that_a_command_does_not_take_stop_it(text: str, name: str, excess: str) -> None:
    """What was typed would be lost otherwise, and "/quit …" would leave."""
    parsed = slash.parse(text, COMMANDS)
    assert isinstance(parsed, slash.Unknown)
    assert (parsed.name, parsed.excess) == (name, excess)


def test_sub_commands_are_named_where_one_was_meant() -> None:
    parsed = slash.parse("/memory wipe", COMMANDS)
    assert isinstance(parsed, slash.Unknown)
    assert "memory clear" in parsed.near
