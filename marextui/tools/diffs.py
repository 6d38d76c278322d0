"""Unified diffs that stay small and quick, whatever the texts are."""

from __future__ import annotations

import difflib

from marextui.tools.textfile import shown

CONTEXT_LINES = 3
MAX_DIFF_LINES = 400
MAX_LINE_CHARS = 1_000
COMPARED_LINES = 2_000
"""Most changed lines (both sides) that are matched with one another; above, the block is shown as replaced whole."""

_Opcode = tuple[str, int, int, int, int]


def unified(before: str, after: str, path: str, *, max_lines: int = MAX_DIFF_LINES) -> str:
    """Unified diff of two texts, at most `max_lines` lines and a note on what is left out; "" when they are equal.

    Lines are ended by line feeds only; a missing final one is told as `diff` does it.
    """
    if before == after:
        return ""
    old, new = _lines(before), _lines(after)
    lines = [f"--- {path if before else '/dev/null'}", f"+++ {path}"]
    total = 0
    for group in _groups(old, new):
        body = _hunk(group, old, new, keep=max(0, max_lines - len(lines)))
        total += 1 + sum(_size(code) for code in group)
        lines.extend(body)
    left_out = total - (len(lines) - 2)
    if left_out > 0:
        lines.append(f"[{left_out} more lines of this diff are not shown]")
    return shown("\n".join(lines)) + "\n"


def added_removed(before: str, after: str) -> tuple[int, int]:
    """How many lines a change adds and removes."""
    codes = [code for group in _groups(_lines(before), _lines(after)) for code in group if code[0] != "equal"]
    return sum(j2 - j1 for _, _, _, j1, j2 in codes), sum(i2 - i1 for _, i1, i2, _, _ in codes)


def _lines(text: str) -> list[str]:
    """Lines without their line feed; the last one is marked when it had none."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    else:
        lines[-1] += "\n\\ No newline at end of file"
    return lines


def _groups(old: list[str], new: list[str]) -> list[list[_Opcode]]:
    """Hunks as opcodes. Equal ends are set aside first: comparing is quadratic, and an edit is mostly small."""
    most = min(len(old), len(new))
    start = next((n for n in range(most) if old[n] != new[n]), most)
    end, most = 0, most - start
    while end < most and old[-1 - end] == new[-1 - end]:
        end += 1
    first = max(0, start - CONTEXT_LINES)
    old_last, new_last = len(old) - end, len(new) - end
    tail = min(end, CONTEXT_LINES)
    if old_last - start + new_last - start > COMPARED_LINES:
        codes: list[_Opcode] = [
            ("equal", first, start, first, start),
            ("replace", start, old_last, start, new_last),
            ("equal", old_last, old_last + tail, new_last, new_last + tail),
        ]
        return [[code for code in codes if code[1] != code[2] or code[3] != code[4]]]
    matcher = difflib.SequenceMatcher(None, old[first : old_last + tail], new[first : new_last + tail])
    return [
        [(tag, i1 + first, i2 + first, j1 + first, j2 + first) for tag, i1, i2, j1, j2 in group]
        for group in matcher.get_grouped_opcodes(CONTEXT_LINES)
    ]


def _hunk(group: list[_Opcode], old: list[str], new: list[str], keep: int) -> list[str]:
    """At most `keep` lines, the header among them."""
    head = f"@@ -{_span(group[0][1], group[-1][2])} +{_span(group[0][3], group[-1][4])} @@"
    lines = [head]
    for tag, i1, i2, j1, j2 in group:
        if len(lines) >= keep:
            break
        room = keep - len(lines)
        if tag == "equal":
            lines += [" " + _cut(line) for line in old[i1 : min(i2, i1 + room)]]
            continue
        lines += ["-" + _cut(line) for line in old[i1 : min(i2, i1 + room)]]
        room = keep - len(lines)
        lines += ["+" + _cut(line) for line in new[j1 : min(j2, j1 + room)]]
    return lines[:keep]


def _cut(line: str) -> str:
    return line if len(line) <= MAX_LINE_CHARS else f"{line[:MAX_LINE_CHARS]}… [{len(line) - MAX_LINE_CHARS} more]"


def _size(code: _Opcode) -> int:
    tag, i1, i2, j1, j2 = code
    return i2 - i1 if tag == "equal" else i2 - i1 + j2 - j1


def _span(start: int, stop: int) -> str:
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start if length == 0 else start + 1},{length}"
