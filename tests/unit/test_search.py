"""Search by words: the passage with the answer stands among the first three (issue section 3)."""

from __future__ import annotations

import random

import pytest

from marextui.context.search import Doc, Hit, Index, search

FILLER = (
    "The build takes a while on this machine, let me look at the configuration of the server first.",
    "I read the module and the tests; the function is called from three places in the code.",
    "Running the tests again to see whether the change works as we expected it to.",
    "The user interface shows the list of items and the number of pages at the bottom.",
    "We could split this file, but it is not needed for the feature we are working on.",
    "The cache is filled on start and the database connection is opened on the first request.",
)
PLANTED = [
    (
        "Which port did we decide the server should listen on?",
        "OK, agreed: bind it to 8443 then, the server must listen there.",
        "8443",
    ),
    (
        "What was the exact error when the migration failed?",
        "exc.OperationalError: (1054) unknown column 'tenant_ref' in migration 0042",
        "tenant_ref",
    ),
    (
        "Where is the retry policy defined?",
        "The retry policy lives in src/net/backoff_policy.py as class RetryBudget.",
        "backoff_policy",
    ),
    ("How many connections may the pool open?", "Limit the connection pool to 37 connections, no more.", "37"),
    ("What did the user forbid?", "Please never touch the legacy/billing folder, that is forbidden.", "legacy/billing"),
    (
        "which commit introduced the regression",
        "git bisect says 9f3c1ab introduced the regression in rendering",
        "9f3c1ab",
    ),
    (
        "What is the name of the feature flag for dark mode?",
        "The feature flag is ui_dark_mode_v2 and it is off by default.",
        "ui_dark_mode_v2",
    ),
    (
        "What is getUserProfile's return type?",
        "getUserProfile returns Promise<ProfileDTO | null> these days.",
        "ProfileDTO",
    ),
    (
        "Quel délai avons-nous choisi pour le timeout ?",
        "On garde un délai de 45 secondes pour le timeout des requêtes.",
        "45 secondes",
    ),
    ("Who reviews the release notes?", "Release notes are reviewed by Annika before we publish.", "Annika"),
    (
        "How do we run the integration tests?",
        "Use `make itest SUITE=smoke` to run the integration tests.",
        "make itest",
    ),
    ("数据库的端口是多少？", "数据库端口是 5433，不是默认值。", "5433"),
]


def _conversation() -> list[Doc]:
    shuffled = random.Random(7)
    docs = [Doc(f"m{n}", " ".join(shuffled.choices(FILLER, k=shuffled.randint(1, 12)))) for n in range(600)]
    for place, (_, fact, _) in enumerate(PLANTED):
        at = 40 + place * 45
        docs[at] = Doc(docs[at].id, f"{docs[at].text}\n{fact}\n{FILLER[place % 6]}")
    return docs


@pytest.fixture(scope="module")
def index() -> Index:
    return Index(_conversation())


@pytest.mark.parametrize(("question", "fact", "answer"), PLANTED)
def test_a_planted_fact_is_found_by_the_words_of_the_question(
    index: Index, question: str, fact: str, answer: str
) -> None:
    """Issue section 3: among hundreds of messages, three results of 2 000 characters hold the answer."""
    hits = index.search(question)
    assert len(hits) <= 3
    assert all(len(h.text) <= 2000 for h in hits)
    assert any(answer in h.text for h in hits), [h.text[:80] for h in hits]


def test_needle_in_one_long_output() -> None:
    """A tool output of 200 000 characters: the window around the match, not its beginning."""
    lines = [f"{n} GET /index {n * 7919 % 1000}ms" for n in range(9000)]
    lines[6543] = "6543 WARN quota exhausted for tenant zebra-9"
    (hit, *_) = search([Doc("o", "\n".join(lines))], "which tenant exhausted its quota?")
    assert "zebra-9" in hit.text
    assert len(hit.text) <= 2000
    assert hit.text.startswith("…")
    assert hit.text.endswith("…")


def test_an_answer_in_the_next_message_comes_along() -> None:
    """A question is answered by what follows it, in other words."""
    docs = [Doc("a", "Which database shall we take for accounts?"), Doc("b", "CockroachDB."), Doc("c", "ok")]
    (hit, *_) = search(docs, "which database for accounts")
    assert hit.id == "a"
    assert "[then, b]\nCockroachDB." in hit.text


def test_identifiers_match_whole_and_in_parts() -> None:
    """snake_case, camelCase and paths."""
    docs = [Doc("a", "call parseHttpHeader(x)"), Doc("b", "see lib/user_session_store.py"), Doc("c", "nothing here")]
    assert search(docs, "parse http header", limit=1)[0].id == "a"
    assert search(docs, "user session store", limit=1)[0].id == "b"
    assert search(docs, "lib/user_session_store.py", limit=1)[0].id == "b"


def test_a_literal_phrase_beats_its_scattered_words() -> None:
    """Exact matches first."""
    docs = [
        Doc("a", "connection pool pool connection reset reset by by peer peer connection reset peer"),
        Doc("b", "the log says: connection reset by peer, after ten minutes of waiting for something else entirely"),
    ]
    assert search(docs, '"connection reset by peer"', limit=1)[0].id == "b"


def test_later_statements_come_first_among_equals() -> None:
    """A correction stands after what it corrects."""
    docs = [Doc("old", "the port is 8080"), Doc("mid", "unrelated words"), Doc("new", "the port is 9090")]
    assert search(docs, "what is the port", limit=1)[0].id == "new"


def test_the_same_text_is_not_shown_twice() -> None:
    """Three results are three places."""
    same = "the quota of tenant zebra is exhausted, says the scheduler of the cluster in the logs of this night"
    hits = search([Doc("a", same), Doc("b", "x"), Doc("c", same), Doc("d", "quota of tenant lion")], "tenant quota")
    assert sorted(h.id for h in hits) == ["c", "d"]


@pytest.mark.parametrize("query", ["", "   ", "?!", "the of and"])
def test_queries_without_a_meaning(query: str) -> None:
    """No terms, no hits; stop-words only are searched as they are."""
    docs = [Doc("a", "zebra"), Doc("b", "")]
    assert search(docs, query) == ()


def test_bounds_and_empty_documents() -> None:
    """Limits hold; nothing raises."""
    docs = [Doc("e", ""), Doc("a", "zebra " * 3000), Doc("b", "zebra\n" * 3000)]
    for max_chars in (50, 300, 2000):
        assert all(0 < len(h.text) <= max_chars for h in search(docs, "zebra", max_chars=max_chars))
    assert search(docs, "zebra", limit=0) == ()
    assert search([], "zebra") == ()


def test_deterministic() -> None:
    """The same question over the same documents gives the same hits, in one index or several."""
    docs = _conversation()[:200]
    first: tuple[Hit, ...] = search(docs, "configuration of the server")
    assert first == search(docs, "configuration of the server") == Index(docs).search("configuration of the server")


def test_a_numbered_thing_is_looked_for_as_a_whole() -> None:
    """ "step 1" is not "step 12": among near-identical passages the one with that very number is first (P16)."""
    docs = [Doc(f"m{n}", f"Step {n}: check billing the usual way, with make billing-check.") for n in range(1, 31)]
    for n in (1, 3, 12, 30):
        assert search(docs, f"With which make command is billing checked (step {n})?")[0].id == f"m{n}"
