"""Which saved states are worth bringing back and which go (issue 4, section 7)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from marextui.context.warm import (
    DAY,
    RING,
    KeptState,
    file_at,
    file_for,
    from_json,
    outlived,
    pieces,
    worth_restoring,
)

MESSAGES = [
    {"role": "system", "content": "s"},
    {"role": "user", "content": "é\ud800"},
    {"role": "user", "content": "2"},
]
PROMPT = pieces(MESSAGES, [{"name": "Read"}], {})
STATE = KeptState("a.bin", "c-1", "engine", PROMPT, 3059, 38_000_000, 1000.0)


def test_a_prompt_that_goes_on_is_worth_it_and_another_beginning_is_not() -> None:
    further = [*MESSAGES, {"role": "user", "content": "3"}]
    assert worth_restoring(STATE, "engine", pieces(further, [{"name": "Read"}], {}))
    assert worth_restoring(STATE, "engine", pieces(MESSAGES[:-1], [{"name": "Read"}], {})), "its end may be omitted now"
    assert not worth_restoring(STATE, "engine", pieces(further, [{"name": "Grep"}], {})), "other tools"
    assert not worth_restoring(STATE, "engine", pieces(further, [{"name": "Read"}], {"enable_thinking": False}))
    assert not worth_restoring(STATE, "engine", pieces(further[1:], [{"name": "Read"}], {})), "another system text"
    assert not worth_restoring(STATE, "another", PROMPT)
    assert not worth_restoring(replace(STATE, engine=""), "", PROMPT), "a server that does not tell is never the same"


def test_the_old_go_then_the_oldest_until_the_rest_fits() -> None:
    now = 100 * DAY
    kept = [replace(STATE, file=f"{n}.bin", saved_at=now - n * DAY, bytes=100) for n in (3, 1, 20, 2, 0)]
    assert [s.file for s in outlived(kept, now=now, days=14, most_bytes=250)] == ["2.bin", "3.bin", "20.bin"]
    assert outlived(kept[:1], now=now, days=14, most_bytes=100) == ()
    assert outlived(kept[:1], now=now, days=14, most_bytes=0) == (kept[0],)
    far = replace(STATE, bytes=None, saved_at=now)
    assert outlived([far], now=now, days=14, most_bytes=0) == (), "what lies on a server's disk takes none of ours"


def test_on_a_servers_disk_a_few_names_are_used_again() -> None:
    kept: list[KeptState] = []
    for n in range(RING + 2):
        file = file_at("here", f"c-{n}", kept)
        kept = [k for k in kept if k.file != file] + [replace(STATE, file=file, conversation=f"c-{n}", saved_at=n)]
    assert len({k.file for k in kept}) == len(kept) == RING
    assert {k.conversation for k in kept} == {f"c-{n}" for n in range(2, RING + 2)}, "the oldest were replaced"
    assert file_at("here", "c-3", kept) == next(k.file for k in kept if k.conversation == "c-3")
    assert file_at("there", "c-3", []) not in {k.file for k in kept}


def test_names_hold_nothing_that_leads_elsewhere() -> None:
    assert file_for("../../etc/passwd") != file_for("c-1")
    assert "/" not in file_for("../../etc/passwd")


@pytest.mark.parametrize("text", ["", "{", "null", "[]", "{}", '{"file": 1}', '{"tokens": 1e999}', "[" * 100_000])
def test_a_damaged_record_is_none(text: str) -> None:
    assert from_json(text) is None


def test_a_record_reads_back() -> None:
    assert from_json(STATE.to_json()) == STATE
    assert from_json(replace(STATE, bytes=None).to_json()) == replace(STATE, bytes=None)
