"""The work log as compact bullets, newest first within each kind, older detail counted (Part 2, 1)."""

from __future__ import annotations

from collections.abc import Mapping

from marextui.context.beside_labels import labels
from marextui.context.quoting import code
from marextui.context.work_records import Fetch, FileRecord, FileTouch, Run, WorkLog

_COMMAND, _ERROR, _PATH = 140, 200, 300
_RANGES = 3


def _spans(touches: list[FileTouch]) -> str:
    """Line ranges read, overlapping ones joined; the last few."""
    ranges = sorted({(t.first, t.last) for t in touches if t.first})
    joined: list[list[int]] = []
    for first, last in ranges:
        if joined and first <= joined[-1][1] + 1:
            joined[-1][1] = max(joined[-1][1], last)
        else:
            joined.append([first, last])
    more = ", …" if len(joined) > _RANGES else ""
    return ", ".join(f"{first}–{last}" for first, last in joined[-_RANGES:]) + more


def _not_done(touches: list[FileTouch], words: Mapping[str, str]) -> str:
    """What became of calls that did not do what they were to do; all have one status."""
    last = touches[-1]
    if last.status == "failed" and last.in_command:
        said = f"{words[last.kind]} {words['failed command']}"
    elif last.status == "failed" and last.kind != "read":
        said = words["change failed"]
    else:
        said = f"{words[last.kind]}: {words[last.status]}"
    times = f" ×{len(touches)}" if len(touches) > 1 else ""
    return f"{said}{times} ({last.message_id})"


def _file_line(record: FileRecord, words: Mapping[str, str]) -> str:
    parts: list[str] = []
    reads = [t for t in record.touches if t.kind == "read" and t.status == "done"]
    if reads:
        parts.append(" ".join(filter(None, (words["read"], _spans(reads)))))
    for kind in ("created", "modified", "deleted"):
        done = [t for t in record.touches if t.kind == kind and t.status == "done"]
        if done:
            times = f" ×{len(done)}" if len(done) > 1 else ""
            parts.append(f"{words[kind]}{times} ({words['last'].format(id=done[-1].message_id)})")
    for status in ("failed", "denied", "interrupted", "not run", "unanswered"):
        others = [t for t in record.touches if t.status == status]
        if others:
            parts.append(_not_done(others, words))
    if record.lines is not None:
        parts.append(words["lines"].format(n=record.lines))
    if record.sha:
        parts.append(f"sha {record.sha}")
    where = f" ({words['in'].format(where=code(record.where, _PATH))})" if record.where else ""
    return f"- {code(record.path, _PATH)}{where}: {', '.join(parts)}"


def _outcome(run: Run, words: Mapping[str, str]) -> str:
    if run.status not in {"done", "failed"}:
        return words[run.status]
    parts = []
    if run.exit_code:
        parts.append(words["exit"].format(code=run.exit_code))
    elif run.status == "failed":
        parts.append(words["failed"])
    if run.tests is not None:
        parts.append(run.tests.text)
    if run.error:
        parts.append(code(run.error, _ERROR))
    elif run.said and run.tests is None:
        parts.append(code(run.said, _ERROR))
    return ", ".join(parts) or words["ok"]


def _run_line(run: Run, times: int, words: Mapping[str, str]) -> str:
    again = f" ×{times}" if times > 1 else ""
    return f"- {code(run.text, _COMMAND)}{again} → {_outcome(run, words)} ({run.message_id})"


def _test_line(run: Run, words: Mapping[str, str]) -> str:
    failing = ""
    if run.tests is not None and run.tests.failing:
        failing = f"; {words['failing']}: " + ", ".join(code(name, _ERROR) for name in run.tests.failing)
    return f"- {words['tests']}: {_outcome(run, words)}{failing} ({code(run.text, _COMMAND)}, {run.message_id})"


def _fetch_line(fetch: Fetch, words: Mapping[str, str]) -> str:
    said = "" if fetch.status == "done" else f": {words[fetch.status]}"
    return f"- {words['fetched'].format(url=code(fetch.url))}{said} ({fetch.message_id})"


def _merged_runs(runs: list[Run]) -> list[tuple[Run, int]]:
    """Newest first, the same command once with how often it ran."""
    times: dict[str, int] = {}
    last: dict[str, Run] = {}
    for run in runs:
        times[run.text] = times.get(run.text, 0) + 1
        last.pop(run.text, None)
        last[run.text] = run
    return [(run, times[run.text]) for run in reversed(last.values())]


def _changed(record: FileRecord) -> bool:
    return any(t.kind != "read" for t in record.touches)


def _newest(records: list[FileRecord], order: Mapping[str, int]) -> list[FileRecord]:
    return sorted(records, key=lambda r: -order[r.touches[-1].message_id])


def render_work_log(log: WorkLog, *, max_chars: int, language: str = "English") -> str:
    """Bullets, newest first within each kind, merged per file, at most `max_chars` characters; "" for an empty log.

    The last test run, changed files and commands come first, then files read, URLs and look-ups; what does not fit is
    one counted line per kind.
    """
    words = labels(language)
    order = {id_: n for n, id_ in enumerate(log.order)}
    changed = [_file_line(r, words) for r in _newest([r for r in log.files if _changed(r)], order)]
    read = [_file_line(r, words) for r in _newest([r for r in log.files if not _changed(r)], order)]
    last = log.last_tests
    tests = [_test_line(last, words)] if last is not None else []
    acts = [_run_line(r, n, words) for r, n in _merged_runs([r for r in log.runs if not r.lookup]) if r is not last]
    looks = [_run_line(r, n, words) for r, n in _merged_runs([r for r in log.runs if r.lookup])]
    urls = [_fetch_line(f, words) for f in {f.url: f for f in reversed(log.fetches)}.values()]
    return _filled(
        [
            (tests, 1, ""),
            (changed, 1, words["earlier files"]),
            (acts, 1, words["earlier commands"]),
            (read, 2, words["earlier reads"]),
            (urls, 2, words["earlier urls"]),
            (looks, 3, words["earlier lookups"]),
        ],
        max_chars,
    )


def _filled(groups: list[tuple[list[str], int, str]], max_chars: int) -> str:
    """Lines of `groups` (lines, rank, the line that counts the rest), lower ranks first, in turns while they fit."""
    groups = [g for g in groups if g[0]]
    everything = "\n".join(line for lines, _, _ in groups for line in lines)
    if len(everything) <= max_chars:
        return everything
    taken = [0] * len(groups)
    rests = [len(rest.format(n=len(lines))) + 1 if rest else 0 for lines, _, rest in groups]
    if sum(rests) > max_chars // 2:  # too small a room to say what is left out
        rests = [0] * len(groups)
    used = sum(rests)  # room for every counting line, given back when its group is complete
    for rank in sorted({r for _, r, _ in groups}):
        open_groups = [g for g in range(len(groups)) if groups[g][1] == rank]
        while open_groups:
            for g in list(open_groups):
                lines = groups[g][0]
                cost = len(lines[taken[g]]) + 1
                freed = rests[g] if taken[g] + 1 == len(lines) else 0
                fits = used + cost - freed <= max_chars + 1
                if fits:
                    used += cost - freed
                    taken[g] += 1
                if not fits or taken[g] == len(lines):
                    open_groups.remove(g)
    shown: list[str] = []
    for (lines, _, rest), n, room in zip(groups, taken, rests, strict=True):
        shown.extend(lines[:n])
        if n < len(lines) and room:
            shown.append(rest.format(n=len(lines) - n))
    return "\n".join(shown)
