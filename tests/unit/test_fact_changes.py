"""Statements in order, and which values stand after them: none rather than a wrong one (Part 2, 2; case 57)."""

from __future__ import annotations

import pytest

from marextui.context.factindex import best_facts, index_facts, render_facts
from marextui.context.messages import Message
from marextui.context.recalling import changes
from tests.stubs.talk import assistant, talk, user


def _lines(*said: str) -> list[str]:
    facts = index_facts(talk(*map(user, said)))
    return render_facts(best_facts([f for f in facts if f.kind != "constraint"], max_chars=4000), max_chars=4000).split(
        "\n"
    )


def _stand(*said: str) -> set[str]:
    """`key = value` of each entry that names a value, as it is shown: without who said it and what it was before."""
    kinds = ("value ", "setting ", "version ", "date ")
    shown = [line.removeprefix("- ").partition(" (")[0].replace("`", "") for line in _lines(*said) if " = " in line]
    return {next((s.removeprefix(k) for k in kinds if s.startswith(k)), s) for s in shown}


@pytest.mark.parametrize(
    ("said", "stand"),
    [
        # two holders in one sentence, one of them changed later
        (
            ("The port is 8080 for staging and 9090 for prod.", "Move prod to port 9191."),
            {"staging port = 8080", "prod port = 9191"},
        ),
        (
            ("timeout is 30 s for login and 90 s for upload", "login is 45 seconds"),
            {"login timeout = 45 seconds", "upload timeout = 90 s"},
        ),
        (
            ("The timeout for login is 30 s.", "Set the login timeout to 2 minutes."),
            {"login timeout = 2 minutes"},
        ),
        (
            ("prod's port is 9090 and staging's port is 8080", "The staging port is 8181."),
            {"prod port = 9090", "staging port = 8181"},
        ),
        (("In prod, the port is 9191.", "The port for prod is 9000."), {"prod port = 9000"}),
        (
            ("The rate is 100 requests per minute for free users and 500 for paid users.",),
            {"free users rate = 100 requests", "paid users rate = 500"},
        ),
        (
            ("le délai est de 30 s pour login et 90 s pour upload", "le délai pour login passe à 45 s"),
            {"login délai = 45 s", "upload délai = 90 s"},
        ),
        (
            ("Der timeout ist 30 s für login und 90 s für upload.", "login wird 45 s"),
            {"login timeout = 45 s", "upload timeout = 90 s"},
        ),
        # nobody can say whose it is: both stand, or none
        (("The port is 9090 for prod.", "The port is 8080."), {"prod port = 9090", "port = 8080"}),
        (("The ports are 8080 and 9090.",), set()),
        (("timeout is 30 s for login", "login is 45 requests"), {"login timeout = 30 s", "login = 45 requests"}),
        # verbs of change are no part of a name
        (("the cache host is `beta`", "cache host moves to gamma"), {"cache host = gamma"}),
        (
            ("the cache host is beta.internal", "The cache host becomes gamma.internal."),
            {"cache host = gamma.internal"},
        ),
        (("the cache host is `beta`", "the cache host is now gamma"), {"cache host = gamma"}),
        (("the cache host is `beta`", "the cache host is now down"), {"cache host = beta"}),
        (("the retry limit is 3", "The retry limit has been changed to 5."), {"retry = 5"}),
        (("la région est eu-west-3", "la région devient eu-west-1"), {"région = eu-west-1"}),
        (("la timeout es 30 s", "la timeout cambia a 45 s"), {"timeout = 45 s"}),
        # what is forbidden or denied is no value, and ends the value it had
        (("never use port 8081",), set()),
        (("Port 8081 nicht verwenden!",), set()),
        (("N'utilise jamais le port 8081.",), set()),
        (("Nunca uses port 8081.",), set()),
        (("不要用 port 8081。",), set()),
        (("Use port 8081.", "Never use port 8081, use port 9000 instead."), {"port = 9000"}),
        (("The port is 8081.", "The port is not 8081."), set()),
        (("The port is 9090, not 8080.",), {"port = 9090"}),
        (("The timeout is 45 s, don't change it.",), {"timeout = 45 s"}),
        # no words of the neighbourhood, no word twice
        (("Remember long350 value7=77",), {"value7 = 77"}),
        (("the port is port 9191",), {"port = 9191"}),
        # a plain correction corrects
        (("Use port 8080.", "No, change the port from 8080 to 9090."), {"port = 9090"}),
        (("The request timeout is 30 s.", "the request timeout is 45 s"), {"request timeout = 45 s"}),
    ],
)
def test_after_these_statements_these_values_stand_and_no_others(said: tuple[str, ...], stand: set[str]) -> None:
    assert _stand(*said) == stand
    if len(said) > 1:
        assert _stand(" ".join(s if s.endswith((".", "!")) else f"{s}." for s in said)) == stand, "in one message"


def test_a_changed_value_tells_the_one_of_its_own_holder() -> None:
    lines = _lines("The port is 8080 for staging and 9090 for prod.", "Move prod to port 9191.")
    assert "- prod port = `9191` (user, m2; was `9090` until m2)" in lines


def _noted(messages: list[Message], n: int) -> str:
    places = {m.id: k for k, m in enumerate(messages)}
    return changes(messages[n].text, messages[n].id, index_facts(messages), places)


def test_recall_says_beside_each_passage_with_an_old_value_that_it_was_changed() -> None:
    """A passage that repeats the value while it held is told of the change; one after the change is not."""
    messages = talk(
        user("The request timeout is 30 seconds."),
        assistant("Noted: the request timeout is 30 seconds."),
        user("Sorry, the request timeout is 45 seconds."),
        assistant("The request timeout was 30 seconds before."),
    )
    note = "request timeout 30 seconds was later changed to 45 seconds (message m3)"
    assert [_noted(messages, n) for n in range(4)] == [note, note, "", ""]
