"""Each rung of the ladder as a pure decision (Part 2, 5; P22; I2, I6; cases 3, 25, 103)."""

from __future__ import annotations

import json

from marextui.context.entries import (
    Entry,
    InputRef,
    InputsOmitted,
    MessageAdded,
    OmissionRef,
    OutputsOmitted,
    ReasoningDropped,
    ShortenedRef,
    TextsShortened,
    TurnOpened,
)
from marextui.context.fold import Conversation, fold
from marextui.context.ladder import LEAST_KEPT, Ladder, Piece, enough, long_inputs
from marextui.context.messages import ImagePart, Message, OtherPart, TextPart, ToolCall
from marextui.context.omission import marker
from marextui.context.repeats import unchanged
from marextui.context.tokens import TokenLedger
from tests.stubs.engine_rig import four


class Talk:
    """Writes a log turn by turn; ids count up: `m1`, `m2` …"""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.turn = 0
        self._n = 0

    def _add(self, role: str, content: object, **kw: object) -> str:
        self._n += 1
        origin = {"user": "user", "assistant": "model", "tool": "tool"}[role]
        message = Message(f"m{self._n}", role, content, origin=origin, turn=self.turn, **kw)  # type: ignore[arg-type]
        self.entries.append(MessageAdded(message))
        return message.id

    def user(self, content: object) -> str:
        self.turn += 1
        self.entries.append(TurnOpened(self.turn))
        return self._add("user", content)

    def says(self, text: str, reasoning: str = "") -> str:
        return self._add("assistant", text, reasoning=reasoning)

    def round(self, *calls: tuple[str, object, object], text: str = "", error: bool = False) -> list[str]:
        """One tool round: (tool, arguments, output) each; the ids of the outputs."""
        made = [
            ToolCall(f"c{self._n}-{i}", name, args if isinstance(args, str) else json.dumps(args))
            for i, (name, args, _) in enumerate(calls)
        ]
        self._add("assistant", text, tool_calls=tuple(made))
        return [
            self._add("tool", output, tool_call_id=made[i].id, name=name, is_error=error)
            for i, (name, _, output) in enumerate(calls)
        ]

    def fold(self, *more: Entry) -> Conversation:
        return fold([*self.entries, *more])

    def ladder(self, *more: Entry, echo: bool = False) -> Ladder:
        return Ladder(self.fold(*more), TokenLedger(four, echo_reasoning=echo), self.turn)


def ids(pieces: tuple[Piece, ...]) -> list[str]:
    return [p.message_id for p in pieces]


def replaced(pieces: tuple[Piece, ...]) -> list[Entry]:
    """The entries an engine would log for these pieces."""
    made: list[Entry] = []
    for n, p in enumerate(pieces, start=1):
        name = f"omitted-{n:04d}"
        if p.call >= 0:
            made.append(InputsOmitted(9, (InputRef(p.message_id, p.call, p.path, name, len(p.text)),)))
        elif p.keep:
            made.append(TextsShortened(9, (ShortenedRef(p.message_id, p.part, name, len(p.text), p.keep, p.label),)))
        else:
            made.append(OutputsOmitted(9, (OmissionRef(p.message_id, p.part, name, len(p.text), p.label),)))
    return made


def shown_images(state: Conversation) -> int:
    return TokenLedger(len).tally(state.history()).images


def frees_what_it_says(talk: Talk, pieces: tuple[Piece, ...], *before: Entry) -> None:
    ledger = TokenLedger(four)
    was = ledger.messages(talk.fold(*before).history())
    now = ledger.messages(talk.fold(*before, *replaced(pieces)).history())
    assert abs(was - now - sum(p.saves for p in pieces)) <= 4 * len(pieces)  # roundings of counted halves


# -- (a) repeats -----------------------------------------------------------------------------------------------------


def test_an_output_read_again_later_in_full_is_superseded() -> None:
    talk = Talk()
    talk.user("look")
    [first] = talk.round(("Read", {"file_path": "a.py"}, "old " * 200))
    talk.round(("Read", {"file_path": "b.py"}, "other " * 200))
    [part] = talk.round(("Read", {"file_path": "./a.py", "offset": 10, "limit": 5}, "part " * 100))
    talk.round(("Read", {"file_path": "a.py"}, "new " * 200))
    talk.round(("Grep", {"pattern": "x"}, "hits"))
    found = talk.ladder().repeats()
    assert ids(found) == [first, part]
    assert found[0].text == "old " * 200
    frees_what_it_says(talk, found)


def test_what_does_not_repeat_the_whole_supersedes_nothing() -> None:
    """A part, an error, a capped or omitted later read, another tool's call, another command."""
    long = "line " * 200
    for later in (
        ("Read", {"file_path": "a.py", "offset": 5}, long),
        ("Read", {"file_path": "a.py"}, f"{long}\n{marker('omitted-001', 9000)}"),
        ("Edit", {"file_path": "a.py", "old_string": "a", "new_string": "b"}, long),
        ("Read", {"file_path": "sub/a.py"}, long),
    ):
        talk = Talk()
        talk.user("look")
        talk.round(("Read", {"file_path": "a.py"}, long))
        talk.round(later)
        talk.round(("Ls", {}, "x"))
        assert talk.ladder().repeats() == (), later
    talk = Talk()
    talk.user("look")
    talk.round(("Read", {"file_path": "a.py"}, long))
    talk.round(("Read", {"file_path": "a.py"}, long), error=True)
    [last] = talk.round(("Read", {"file_path": "a.py"}, long))
    talk.round(("Ls", {}, "x"))
    assert ids(talk.ladder(OutputsOmitted(2, (OmissionRef(last, -1, "omitted-001", 1000),))).repeats()) == []
    assert len(talk.ladder().repeats()) == 2


def test_a_command_run_again_is_a_repeat_and_the_newest_round_is_never_touched() -> None:
    talk = Talk()
    talk.user("test")
    [old] = talk.round(("Bash", {"command": "pytest -q"}, "F" * 900))
    talk.round(("Bash", {"command": "pytest -q"}, "." * 900), ("Bash", {"command": "pytest -q"}, "." * 900))
    assert ids(talk.ladder().repeats()) == [old]


def test_a_copy_does_not_give_way_to_what_only_points_at_it() -> None:
    """Cases 70, 71: "unchanged, see there" is no second copy."""
    talk = Talk()
    talk.user("read it")
    (first,) = talk.round(("Read", {"file_path": "a.py"}, "x" * 1000))
    before = talk.fold().message(first)
    assert before is not None
    talk.round(("Read", {"file_path": "a.py"}, unchanged("a.py", before)))
    talk.says("ok")
    talk.user("go on")
    talk.round(("Bash", {"command": "ls"}, "y"))
    assert talk.ladder().repeats() == ()


# -- (b) outputs, (c) inputs, (d) reasoning --------------------------------------------------------------------------


def test_bulky_outputs_of_earlier_turns_only() -> None:
    talk = Talk()
    talk.user("one")
    [old, short] = talk.round(("A", {}, "a" * 601), ("B", {}, "b" * 600))
    talk.says("done")
    talk.user("two")
    talk.round(("C", {}, "c" * 2_000))
    talk.round(("D", {}, "d" * 2_000))
    found = talk.ladder().outputs()
    assert ids(found) == [old]
    assert short not in ids(found)
    frees_what_it_says(talk, found)
    assert talk.ladder(*replaced(found)).outputs() == ()


def test_bulky_arguments_of_earlier_calls() -> None:
    talk = Talk()
    talk.user("one")
    talk.round(("Write", {"file_path": "a.py", "content": "x = 1\n" * 200}, "written"))
    edits = {"path": "b", "edits": [{"old": "o" * 10, "new": "n" * 700}, {"new": "m" * 800}]}
    talk.round(("Edit", edits, "ok"), ("Edit", '{"broken": "' + "z" * 900, "no"))
    talk.says("done")
    talk.user("two")
    talk.round(("Write", {"content": "y" * 5_000}, "written"))
    found = talk.ladder().inputs()
    assert [(p.call, p.path) for p in found] == [
        (0, ("content",)),
        (0, ("edits", 0, "new")),
        (0, ("edits", 1, "new")),
        (1, ()),
    ]
    assert found[0].text == "x = 1\n" * 200
    after = talk.fold(*replaced(found)).history()
    assert json.loads(after[1].tool_calls[0].arguments)["file_path"] == "a.py"
    assert all(isinstance(json.loads(c.arguments), dict) for m in after for c in m.tool_calls)
    assert talk.ladder(*replaced(found)).inputs() == ()


def test_long_inputs_are_found_at_any_depth_and_never_break() -> None:
    deep: object = "x" * 700
    for _ in range(30):
        deep = [deep]
    assert list(long_inputs(json.dumps({"a": deep}), 600)) == []
    assert list(long_inputs("[" * 5_000, 600)) == [((), "[" * 5_000)]
    assert list(long_inputs(json.dumps(["x" * 700]), 600)) == [((), json.dumps(["x" * 700]))]
    assert list(long_inputs('{"a": 1}', 600)) == []


def test_old_reasoning_goes_where_it_is_sent_back_and_that_of_the_newest_turn_stays() -> None:
    """Case 25."""
    talk = Talk()
    talk.user("one")
    talk.says("a", reasoning="r" * 400)
    newest = talk.user("two")
    talk.round(("A", {}, "x"))
    assert talk.ladder().old_reasoning() == ("", 0)
    before, freed = talk.ladder(echo=True).old_reasoning()
    assert (before, freed) == (newest, 100)
    assert talk.ladder(ReasoningDropped(2, before), echo=True).old_reasoning() == ("", 0)


# -- images ----------------------------------------------------------------------------------------------------------


def test_the_newest_images_stay_and_those_of_the_newest_request_always_do() -> None:
    """Case 103."""
    talk = Talk()
    pictures = [talk.user((TextPart("see"), ImagePart(f"data:image/png;base64,{n}"))) for n in range(5)]
    talk.says("seen")
    last = talk.user((ImagePart("data:,a"), ImagePart("data:,b"), ImagePart("data:,c")))
    assert shown_images(talk.fold()) == 8
    assert ids(talk.ladder().old_images(4)) == pictures[:4]
    assert ids(talk.ladder().old_images(1)) == pictures
    found = talk.ladder().old_images()
    assert last not in ids(found)
    assert found[0].label == "image, PNG, 1 kB"
    frees_what_it_says(talk, found)
    assert shown_images(talk.fold(*replaced(found))) == 3


# -- (f) inside the newest turn --------------------------------------------------------------------------------------


def test_inside_the_turn_everything_before_the_newest_round_may_go_and_the_request_may_not() -> None:
    talk = Talk()
    request = talk.user("do it " * 200)
    [early] = talk.round(("A", {"text": "i" * 400}, "a" * 400))
    [late] = talk.round(("A", {}, "b" * 400))
    found = talk.ladder().in_turn()
    assert {(p.message_id, p.call) for p in found} == {(early, -1), ("m2", 0)}
    assert not {request, late} & set(ids(found))
    frees_what_it_says(talk, found)


def test_the_newest_round_is_cut_to_head_and_tail_the_largest_output_first() -> None:
    talk = Talk()
    talk.user("go")
    [big, small] = talk.round(("A", {}, "head\n" + "a" * 9_000 + "\ntail"), ("B", {}, "b" * 1_000))
    [piece] = talk.ladder().newest_round(500)
    assert piece.message_id == big
    assert piece.keep >= LEAST_KEPT
    assert 500 <= piece.saves <= 900
    frees_what_it_says(talk, (piece,))
    both = talk.ladder().newest_round(2_300)
    assert set(ids(both)) == {big, small}
    assert all(p.keep >= LEAST_KEPT for p in both)  # in sight: what vanished whole would be asked for again
    frees_what_it_says(talk, both)
    cut = replaced(both)
    gone = talk.ladder(*cut).newest_outputs(10_000)
    assert [p.keep for p in gone] == [0, 0]
    frees_what_it_says(talk, gone, *cut)


def test_the_request_is_cut_last_and_can_be_cut_again() -> None:
    talk = Talk()
    text = "begin\n" + "middle of a long message\n" * 300 + "end"
    request = talk.user(text)
    talk.says("thinking aloud " * 100)
    ladder = talk.ladder()
    assert request not in ids(ladder.texts(10_000))
    [piece] = ladder.request(1_000)
    assert (piece.message_id, piece.label, piece.text) == (request, "message", text)
    frees_what_it_says(talk, (piece,))
    cut = replaced((piece,))
    [again] = talk.ladder(*cut).request(300)
    assert LEAST_KEPT <= again.keep < piece.keep
    frees_what_it_says(talk, (again,), *cut)
    shown = talk.fold(*cut).history()[0].text
    assert shown.startswith("begin\n")
    assert "end\n[omitted omitted-0001: message, " in shown


def test_a_request_of_pictures_only_gives_them_up_at_the_very_end() -> None:
    talk = Talk()
    talk.user((ImagePart("data:,a"), OtherPart('{"type":"input_audio","data":"' + "QUJD" * 100 + '"}')))
    ladder = talk.ladder()
    assert ladder.old_images() == ()
    assert ladder.in_turn() == ()
    found = ladder.request(10_000)
    assert [p.label for p in found] == ["image", "attachment"]
    frees_what_it_says(talk, found)


def test_enough_takes_no_more_than_needed() -> None:
    pieces = [Piece("outputs", f"m{n}", "x", 10) for n in range(5)]
    assert enough(pieces, 25) == (tuple(pieces[:3]), 30)
    assert enough(pieces, 0) == ((), 0)
    assert enough(pieces, 999) == (tuple(pieces), 50)


def test_a_ladder_without_anything_has_no_pieces() -> None:
    ladder = Ladder(Conversation(), TokenLedger(four), 1)
    rungs = (ladder.repeats(), ladder.outputs(), ladder.inputs(), ladder.in_turn(), ladder.newest_round(9))
    assert rungs == ((),) * 5
    assert (ladder.request(9), ladder.texts(9), ladder.request_tokens(), ladder.newest_turn_tokens()) == ((), (), 0, 0)
