"""Reading and rendering summaries; which replies are refused (P6–P8, P11, M16, L22; cases 37, 39, 50)."""

from __future__ import annotations

import pytest

from marextui.context.entries import Summary, SummaryItem, SummarySection
from marextui.context.fusion import fit
from marextui.context.summary import (
    LONG_ITEM,
    SECTIONS,
    UNSTRUCTURED,
    SummaryRejected,
    check_reply,
    parse_summary,
    render_summary,
    without_lumps,
)


def _texts(summary: Summary) -> dict[str, list[str]]:
    return {s.title: [i.text for i in s.items] for s in summary.sections}


WELL_FORMED = """## Session Intent
- Add dark mode

## Files Modified
- src/app.css: dark colours
- `src/theme.ts` - new toggle

## Decisions Made
- Use CSS variables

## Current State
- Tests: 12 passed, 1 failed

## Next Steps
- Fix the failing test
"""
EXPECTED = {
    "Session Intent": ["Add dark mode"],
    "Files Modified": ["src/app.css: dark colours", "`src/theme.ts` - new toggle"],
    "Decisions Made": ["Use CSS variables"],
    "Current State": ["Tests: 12 passed, 1 failed"],
    "Next Steps": ["Fix the failing test"],
}
MALFORMED = {
    "fenced": f"```markdown\n{WELL_FORMED}```",
    "marked": f"[Earlier conversation summary]\n{WELL_FORMED}",
    "numbered": WELL_FORMED.replace("## Session", "# 1. Session").replace("## Files Modified", "# 2. Files modified:"),
    "bold": "\n".join(f"**{line[3:]}**" if line.startswith("## ") else line for line in WELL_FORMED.split("\n")),
    "bold colon": "\n".join(f"**{line[3:]}:**" if line.startswith("## ") else line for line in WELL_FORMED.split("\n")),
    "plain colon": "\n".join(f"{line[3:]}:" if line.startswith("## ") else line for line in WELL_FORMED.split("\n")),
    "underlined": "\n".join(
        f"{line[3:]}\n=====" if line.startswith("## ") else line for line in WELL_FORMED.split("\n")
    ),
    "upper case": "\n".join(line.upper() if line.startswith("## ") else line for line in WELL_FORMED.split("\n")),
    "stars": WELL_FORMED.replace("\n- ", "\n* "),
    "numbers": WELL_FORMED.replace("\n- ", "\n1. "),
    "no bullets": WELL_FORMED.replace("\n- ", "\n"),
    "crlf": WELL_FORMED.replace("\n", "\r\n"),
    "no space": WELL_FORMED.replace("## ", "##"),
    "thinking": f"<think>Let me see.\n## Files Modified\n- wrong.py: no</think>\n{WELL_FORMED}",
    "french": WELL_FORMED.replace("Session Intent", "Intention de la session")
    .replace("Files Modified", "Fichiers modifiés")
    .replace("Decisions Made", "Décisions prises")
    .replace("Current State", "État actuel")
    .replace("Next Steps", "Prochaines étapes"),
}


@pytest.mark.parametrize("name", ["well formed", *MALFORMED])
def test_malformed_replies_give_the_same_five_sections(name: str) -> None:
    """P6: headings and bullets of any make."""
    assert _texts(parse_summary(MALFORMED.get(name, WELL_FORMED), cycle=1)) == EXPECTED


@pytest.mark.parametrize(
    "text", ["", "   ", "## Nonsense", "### \n- ", "none", "```", "|||\n|-|", "** **", "##\n##\n", "- "]
)
def test_five_sections_always(text: str) -> None:
    """P6: whatever comes, all sections stand, in order, and hold nothing that says nothing."""
    summary = parse_summary(text, cycle=1)
    assert tuple(s.title for s in summary.sections) == SECTIONS
    assert not any(s.items for s in summary.sections)


def test_missing_section_is_empty_and_unknown_ones_stay_at_the_end() -> None:
    """P6."""
    summary = parse_summary("## Risks\n- may break Windows\n## Next Steps\n- ship\n## Empty one\nnone", cycle=1)
    assert tuple(s.title for s in summary.sections) == (*SECTIONS, "Risks")
    assert _texts(summary)["Risks"] == ["may break Windows"]
    assert _texts(summary)["Files Modified"] == []


def test_reply_without_headings_goes_under_current_state_marked() -> None:
    """P6: prose is kept, and known to be unstructured."""
    summary = parse_summary("We fixed the parser.\nIt now reads tabs.\n\nThe tests pass.", cycle=2)
    assert _texts(summary)["Current State"] == ["We fixed the parser. It now reads tabs.", "The tests pass."]
    assert {i.key for s in summary.sections for i in s.items} == {UNSTRUCTURED}


@pytest.mark.parametrize("nothing", ["none", "None.", "N/A", "- none", "*None*", "Aucun", "- aucune.", "-", "—", "✅"])
def test_saying_none_is_no_item(nothing: str) -> None:
    """P6: an empty section reads as empty, in the user's language too."""
    assert (
        _texts(parse_summary(f"## Decisions Made\n{nothing}\n## Next Steps\n- go on", cycle=1))["Decisions Made"] == []
    )


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("- src/app.py: added retry", ["src/app.py"]),
        ("- `src/app.py` — added retry", ["src/app.py"]),
        ("- **src/app.py**: added retry", ["src/app.py"]),
        ("- ./src/app.py: x", ["src/app.py"]),
        ("- Modified src/app.py to retry", ["src/app.py"]),
        ("- Makefile: new target", ["Makefile"]),
        ("- a.py, b.py: moved", ["a.py", "b.py"]),
        ("- `a.py` and `b.py`: moved", ["a.py", "b.py"]),
        ("| File | Change |\n|---|---|\n| a.py | moved |\n| b.py | new |", ["a.py", "b.py"]),
        ("src/app.py: one\nsrc/lib.py: two", ["src/app.py", "src/lib.py"]),
    ],
)  # fmt: skip
def test_files_are_keyed_by_path(line: str, keys: list[str]) -> None:
    """P6, P10: fusion needs the path, however it was written."""
    files = parse_summary(f"## Files Modified\n{line}", cycle=1).sections[1]
    assert [i.key for i in files.items] == keys


def test_nested_bullets_and_wrapped_lines_stay_one_item() -> None:
    """P6: three notes on one file are one item of that file."""
    summary = parse_summary("## Files Modified\n- a.py:\n  - retry\n  - timeout\n- b.py: long\n  line", cycle=1)
    assert _texts(summary)["Files Modified"] == ["a.py: retry; timeout", "b.py: long line"]


def test_subheadings_label_their_items() -> None:
    """P6: a deeper heading inside a section does not end it."""
    summary = parse_summary("## Current State\n### Tests\n- green\n### Build\n- red\n## Next Steps\n- fix", cycle=1)
    assert _texts(summary)["Current State"] == ["Tests: green", "Build: red"]


def test_an_item_that_starts_like_a_heading_stays_an_item() -> None:
    """`Status:` and `To do:` inside a section are items, not sections."""
    summary = parse_summary("## Current State\n- Status: green\n## Next Steps\n- To do: release", cycle=1)
    assert _texts(summary)["Current State"] == ["Status: green"]
    assert _texts(summary)["Next Steps"] == ["To do: release"]


def test_quoted_errors_survive_a_code_block() -> None:
    """P17: the exact error is in the item, whatever it was wrapped in."""
    reply = (
        "## Current State\n- Build fails:\n```\nTypeError: x is not a function\n  at a.ts:3\n```\n## Next Steps\n- fix"
    )
    assert _texts(parse_summary(reply, cycle=1))["Current State"] == [
        "Build fails: TypeError: x is not a function ⏎ at a.ts:3"
    ]


def test_custom_sections() -> None:
    """P7: the domain's own sections, in its order."""
    own = ("Client", "Symptoms", "State of the case", "Next Steps")
    summary = parse_summary("# Symptoms\n- no light\n# CLIENT\n- Ms A", cycle=1, sections=own)
    assert tuple(s.title for s in summary.sections) == own
    assert _texts(summary) == {"Client": ["Ms A"], "Symptoms": ["no light"], "State of the case": [], "Next Steps": []}


def test_every_item_has_its_cycle_and_sources_and_no_future_tag() -> None:
    """P11: the cycle is ours to give; a repeated tag counts unless it is impossible."""
    reply = "## Decisions Made\n- A (cycle 1)\n- B (cycles 1–2)\n- C (cycle 9)\n- D"
    items = parse_summary(reply, cycle=3, sources=("m1",)).sections[2].items
    assert [(i.text, i.first_cycle, i.last_cycle) for i in items] == [
        ("A", 1, 1),
        ("B", 1, 2),
        ("C", 3, 3),
        ("D", 3, 3),
    ]
    assert {i.sources for i in items} == {("m1",)}


def test_rendering() -> None:
    """P6, P11: headings, bullets that end with their tag, `none`; only active items; nothing before them."""
    summary = Summary(
        (
            SummarySection("Session Intent", (SummaryItem("add login", first_cycle=2, last_cycle=2),)),
            SummarySection(
                "Decisions Made",
                (
                    SummaryItem("port 80", "k", 1, 1, (), "superseded"),
                    SummaryItem("port 81", "k", 1, 3),
                    SummaryItem("old", status="done"),
                ),
            ),
            SummarySection("Next Steps", ()),
        )
    )
    assert render_summary(summary) == (
        "## Session Intent\n- add login (cycle 2)\n\n"
        '## Decisions Made\n- port 81 (supersedes: "port 80") (cycles 1–3)\n\n'
        "## Next Steps\nnone"
    )


def test_rendering_within_a_cap_drops_the_old_and_cheap_first() -> None:
    """M12/P10: the view never gets more than the cap; intent and the newest survive."""
    decisions = tuple(SummaryItem(f"decision number {n}", first_cycle=n, last_cycle=n) for n in range(1, 40))
    summary = Summary(
        (
            SummarySection("Session Intent", (SummaryItem("the goal"),)),
            SummarySection("Decisions Made", decisions),
        )
    )
    text = render_summary(summary, cap_chars=400)
    assert len(text) <= 400
    assert "the goal" in text
    assert "decision number 39 " in text
    assert "decision number 1 " not in text
    assert len(render_summary(summary, cap_chars=10)) <= 10


FORTY = "The parser reads tabs now, all is green."


def _reject(text: str, finish: str = "stop", calls: bool = False, reasoning: str = "") -> str:
    with pytest.raises(SummaryRejected) as caught:
        check_reply(text, finish, calls, reasoning)
    return str(caught.value)


def test_forty_characters_are_enough_and_39_are_not() -> None:
    """M16."""
    assert len(FORTY) == 40
    assert check_reply(FORTY, "stop", False, "") == FORTY
    assert "too short" in _reject(FORTY[:-1])


@pytest.mark.parametrize(
    ("text", "reasoning", "says"),
    [
        ("", "", "empty"),
        (" \n\t ", "", "empty"),
        ("[Earlier conversation summary]", "", "thinking"),
        ("", "The user wants " * 20, "thinking"),
        ("<think>" + "hmm " * 50 + "</think>", "", "thinking"),
        ("<think>" + "hmm " * 50, "", "thinking"),
        ("<analysis>" + "hmm " * 50 + "</analysis>\n", "", "thinking"),
        ("hmm " * 50 + "</think>", "", "thinking"),
        ("\n\n".join(f"## {t}\nnone" for t in SECTIONS), "", "too short"),
    ],
)
def test_replies_without_real_text(text: str, reasoning: str, says: str) -> None:
    """M16, cases 37 and 50: each failure tells a person what happened."""
    assert says in _reject(text, reasoning=reasoning)


@pytest.mark.parametrize(
    "text",
    [
        f'{FORTY}\n<tool_call>{{"name": "Bash", "arguments": {{}}}}</tool_call>',
        '<think>let me</think><tool_call>{"name":"Read"}</tool_call>' + FORTY,
        '{"name": "Edit", "arguments": {"path": "a.py", "text": "and quite a lot of words in here to be long"}}',
        '```json\n[{"name": "Edit", "arguments": {"path": "a.py", "text": "and quite a lot of words in it"}}]\n```',
        '<function_calls>\n<invoke name="Read">' + FORTY,
        '[TOOL_CALLS] [{"name": "Bash"}] ' + FORTY,
        "<function=Read>\n<parameter=path>a.py</parameter></function>" + FORTY,
        "<|python_tag|>run() " + FORTY,
    ],
)
def test_tool_calls_written_as_text(text: str) -> None:
    """L22, case 39: the model went on working."""
    assert "tool call" in _reject(text)


def test_tool_calls_as_data() -> None:
    """M16."""
    assert "called a tool" in _reject(FORTY, calls=True)
    assert "called a tool" in _reject(FORTY, finish="tool_calls")


@pytest.mark.parametrize(
    "text",
    [
        "diff --git a/a.py b/a.py\nindex 0123456..89abcde 100644\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n"
        "-old line of quite some length here\n+new line of quite some length here\n",
        "Sure:\n```python\ndef main() -> None:\n    print('a long enough program to be forty characters')\n```",
    ],
)
def test_code_instead_of_a_summary(text: str) -> None:
    """Case 39: a diff is no summary."""
    assert "code" in _reject(text)


def test_prose_about_tool_calls_is_accepted() -> None:
    """L22: naming a tool, or quoting its syntax, is no call."""
    for text in (
        "The Read tool is used first, then Edit, and Bash runs the tests.",
        "The parser now accepts `<tool_call>` blocks that are never closed.",
        f"{FORTY}\n```\n<tool_call>quoted</tool_call>\n```",
    ):
        assert check_reply(text, "stop", False, "") == text


def test_cut_by_the_cap_with_text_is_accepted() -> None:
    """M16: finish_reason length with text."""
    assert check_reply(WELL_FORMED + "- and then we", "length", False, "") == WELL_FORMED + "- and then we"
    assert "cut by the output limit" in _reject("<think>" + "hm " * 400, finish="length")


def test_content_filter_is_a_failure() -> None:
    """M15: half an answer for another's reasons."""
    assert "filter" in _reject(FORTY, finish="content_filter")


def test_wrappers_are_removed() -> None:
    """Case 50: what is kept is the summary itself."""
    wrapped = f"<think>x</think>\n[Earlier conversation summary]\n<summary>\n```markdown\n{WELL_FORMED}```\n</summary>"
    assert check_reply(wrapped, "stop", False, "") == WELL_FORMED.strip()


PROSE = " ".join(f"In step {n} the payment {5000 + n} of the night was declined with code {50 + n}." for n in range(40))


@pytest.mark.parametrize(
    "reply", [PROSE, f"## Current State\n- {PROSE}", PROSE.replace(". ", "; "), PROSE.replace(".", "")]
)
def test_a_lump_of_prose_becomes_items_that_may_leave_one_by_one(reply: str) -> None:
    """A small model writes a page without a bullet: as one item it found no room, and nothing was kept of it."""
    summary = without_lumps(parse_summary(check_reply(reply, "stop", False, ""), cycle=1))
    items = [i for s in summary.sections for i in s.items]
    assert 0 < max(len(i.text) for i in items) <= LONG_ITEM
    assert " ".join(i.text for i in items) == " ".join(reply.split("- ")[-1].split())
    kept, folded = fit(summary, 1000)
    assert len(folded) < len(items)
    assert len(render_summary(kept)) <= 1000


def test_a_lump_that_goes_round_in_circles_is_kept_once() -> None:
    """As the 1.5B model writes until its answer is full."""
    circle = "The user moves the service to the new cluster. The port stays 8417. " * 30
    summary = without_lumps(parse_summary(f"## Session Intent\n{circle}The port", cycle=1))
    assert [i.text for s in summary.sections for i in s.items] == [
        "The user moves the service to the new cluster. The port stays 8417. The port"
    ]


def test_what_has_no_place_to_be_cut_stays_whole() -> None:
    lumps = "## Current State\n- " + "x" * 900 + "\n- 短い。" + "長" * 500
    summary = without_lumps(parse_summary(lumps, cycle=1))
    assert [len(i.text) for i in summary.sections[3].items] == [900, 3, 500]
