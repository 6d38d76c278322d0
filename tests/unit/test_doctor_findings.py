"""What an examination is made to mean: bounds, verdicts, settings, and how it is printed (issue 4, section 6)."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marextui.context.doctor_chart import Chart, Measured
from marextui.context.doctor_findings import advice, findings, kept, savings, toml_value
from marextui.context.doctor_report import as_json, report, statement
from marextui.context.doctor_requests import REPLY_BYTES, Asked, Script, bound, clipped
from marextui.settings_schema import BY_NAME, from_toml

LIMIT = bound(Script("abc", True).plan())
HOSTILE = "\x1b]0;pwned\x07\x1b[31mred\x9b2J\u202eevil\n\r" + "a" * 5000


def chart(**fields: object) -> Chart:
    """A local llama.cpp that can do everything."""
    made = Chart("http://127.0.0.1:8080/v1", True, model="qwen-7b", kind="llama.cpp", version="b1", models=1)
    made.window, made.window_from, made.slots, made.save_path = 8192, "/props (n_ctx)", 1, True
    made.answers = made.streams = True
    made.usage_plain = made.usage_stream = made.cached_told = made.progress = made.timings = True
    made.tool_use, made.tool_none, made.tools_kept, made.two_users, made.cancels = (
        "called",
        "not called",
        True,
        True,
        True,
    )
    made.measured = {
        "opening": Measured(400, 3, 4.0),
        "continuation": Measured(20, 403, 0.25),
        "separate": Measured(390, 5, 3.5),
        "back": Measured(12, 420, 0.2),
        "prewarmed": Measured(10, 400, 0.1),
    }
    made.requests, made.counted = 14, 2900
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def settings_of(made: Chart, **current: object) -> dict[str, object]:
    return {a.key: a.value for a in advice(made, current, connect=False)}


def test_the_bound_counts_every_try() -> None:
    asked = Asked("x", ({"role": "user", "content": "é" * 10},), 5, tries=2)
    assert bound([asked]).tokens == 2 * asked.tokens
    assert asked.tokens >= 20
    assert bound([asked]).answers == 10
    assert bound([asked]).requests == 2


def stated(url: str, *, local: bool) -> str:
    limit = bound(Script("n", local).plan())
    return " ".join(x.text for x in statement(url, limit, local=local, note="More.", width=60))


def test_the_statement_comes_with_numbers_and_a_warning_for_hosts() -> None:
    told = stated("https://api.example.com/v1", local=False)
    assert "may cost money" in told
    assert re.search(r"at most \d+ requests: about \d+ tokens, never more than [\d ]+", told)
    assert told.endswith("More.")
    assert "cost" not in stated("http://127.0.0.1/v1", local=True)


def test_the_script_is_small() -> None:
    assert LIMIT.tokens < 12_000
    assert bound(Script("abc", False).plan()).tokens < 2_500
    assert max(a.tokens for a in Script("abc", True).plan()) < 2_048  # fits the smallest windows people run


def test_no_two_examinations_share_a_prompt() -> None:
    """Else the second one would find its prompts computed."""
    one, two = Script("aaaaaa", True), Script("bbbbbb", True)
    for a, b in ((one.opening(), two.opening()), (one.separate(), two.separate()), (one.prewarm(), two.prewarm())):
        assert a.messages[0]["content"][:6] != b.messages[0]["content"][:6]
    assert one.opening().messages[0] != one.prewarm().messages[0]


@given(st.text())
def test_a_reply_that_is_sent_back_is_short(reply: str) -> None:
    assert 0 < len(clipped(reply).encode()) <= REPLY_BYTES


def test_all_is_well() -> None:
    assert {f.verdict for f in findings(chart())} == {"yes"}
    assert settings_of(chart()) == {
        "compact_continuation": True,
        "prewarm": "on",
        "proj_snapshot": True,
        "warm_resume": "all",
    }
    assert "warm_resume" not in settings_of(chart(label="our own engine")), "what it has computed is kept anyway"
    assert "warm_resume" not in settings_of(chart(slots=4))
    assert "warm_resume" not in settings_of(chart(save_path=False))


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        pytest.param({"slots": 4}, {"prewarm": "off", "compact_continuation": True}, id="L38-several-slots"),
        pytest.param({"slots": None}, {"prewarm": "off"}, id="L38-slots-unknown"),
        pytest.param({"tool_none": "called"}, {"compact_continuation": False, "prewarm": "on"}, id="L22-calls"),
        pytest.param({"tools_kept": False}, {"compact_continuation": False}, id="D9-tools-dropped"),
        pytest.param({"tool_none": "as text"}, {"compact_continuation": True}, id="L22-text-falls-back"),
        pytest.param(
            {"measured": {}},
            {"compact_continuation": False, "prewarm": "off", "proj_snapshot": False},
            id="nothing-measured",
        ),
    ],
)
def test_settings_follow_from_what_was_found(fields: dict[str, object], wanted: dict[str, object]) -> None:
    told = settings_of(chart(**fields))
    assert {k: told[k] for k in wanted} == wanted


def test_what_was_not_reached_is_no_advice() -> None:
    assert settings_of(chart(measured={}, ended="it was stopped")) == {}


def test_a_prompt_sent_ahead_and_not_found_again() -> None:
    made = chart()
    made.measured["prewarmed"] = Measured(405, 0, 4.0)
    assert settings_of(made)["prewarm"] == "off"


def test_lines_can_be_put_into_the_settings_file() -> None:
    """Every line is valid TOML and a value the settings take."""
    made = chart(model='odd "name"\\ \u202e\x1b[31m')
    for one in advice(made, {}, connect=True):
        [(key, value)] = tomllib.loads(one.line).items()
        assert value == one.value
        assert from_toml(BY_NAME[key], value) == one.value
        assert one.line.isprintable()


@given(st.text())
def test_any_text_is_a_toml_string_that_can_be_shown(text: str) -> None:
    line = f"x = {toml_value(text)}"
    assert line.isprintable()
    read = tomllib.loads(line)["x"]
    assert read == re.sub("[\ud800-\udfff]", "\ufffd", text)


def test_a_name_that_would_mean_a_file_is_no_line() -> None:
    """llama.cpp calls a model by its file when nobody gave it a name; our settings would look for that file."""
    assert [a.key for a in advice(chart(model="/models/qwen.GGUF"), {}, connect=True)][:2] == [
        "base_url",
        "compact_continuation",
    ]


def test_what_is_set_already_is_said() -> None:
    told = advice(chart(), {"compact_continuation": True, "prewarm": "off"}, connect=False)
    assert {a.key: a.set_already for a in told} == {
        "compact_continuation": True,
        "prewarm": False,
        "proj_snapshot": False,
        "warm_resume": False,
    }


def test_the_speed_is_told_with_the_timings() -> None:
    def words(speed: float | None) -> str:
        return next(f.words for f in findings(chart(speed=speed)) if f.id == "timings")

    assert words(1234.4) == "told: it computes 1 234 prompt tokens a second"
    assert words(None) == "told"


def test_a_cache_is_judged_by_time_where_tokens_are_not_told() -> None:
    made = chart(cached_told=False)
    made.measured["opening"], made.measured["continuation"] = Measured(None, None, 4.0), Measured(None, None, 0.4)
    assert kept(made, "continuation") is True
    made.measured["continuation"] = Measured(None, None, 3.9)
    assert kept(made, "continuation") is False
    made.measured["opening"] = Measured(None, None, 0.4)  # too quick to say anything
    assert kept(made, "continuation") is None


def test_savings() -> None:
    going_on, ahead = savings(chart())
    assert (going_on.computed, going_on.instead_of, going_on.sooner) == (20, 390, 14.0)
    assert (ahead.name, ahead.computed, ahead.instead_of) == ("prewarmed", 10, 400)


@pytest.mark.parametrize("width", [72, 80, 110])
def test_lines_are_not_wider_than_asked(width: int) -> None:
    """All but the settings, which are to be copied."""
    made = chart(two_users=False, two_users_said="a " * 300, cancels=False, slots=4, ended="word " * 60)
    lines = report(made, advice(made, {}, connect=True), config="/c.toml", width=width)
    assert max(len(x.text) for x in lines if x.tone != "code") <= width


def test_a_long_path_stays_whole() -> None:
    path = "/home/" + "a-long-name/" * 12 + "config.toml"
    assert any(f"{path}:" in x.text for x in report(chart(), advice(chart(), {}, connect=True), config=path, width=80))


def test_marks_stand_in_one_column() -> None:
    rows = [x for x in report(chart(cancels=None, slots=4), (), config="/c.toml") if x.lead == 1]
    assert {x.text[0] for x in rows} == {"✓", "✗", "?"}
    assert len({x.text.index("  ") for x in rows if x.text.startswith("✓ window")}) == 1
    words = {f.words for f in findings(chart(cancels=None, slots=4))}
    columns = {x.text.index(w) for x in rows for w in words if x.text.endswith(f"  {w}")}
    assert len(columns) == 1


def test_a_hostile_server_cannot_draw() -> None:
    """I3, I4: names, refusals and versions are untrusted."""
    made = chart(model=HOSTILE, version=HOSTILE, two_users=False, two_users_said=HOSTILE, ended=HOSTILE)
    advised = advice(made, {}, connect=True)
    for line in report(made, advised, config="/c.toml", width=80):
        assert line.text.isprintable(), line
        assert len(line.text) < 500
    assert "model" not in {a.key for a in advised}
    json.loads(json.dumps(as_json(made, advised, LIMIT)))


def test_an_unusable_server_gets_a_sentence_and_no_settings() -> None:
    made = Chart("http://127.0.0.1:1/v1", True, problem="Nothing listens there.")
    assert advice(made, {}, connect=True) == ()
    [first, *_] = report(made, (), config="/c.toml")
    assert first.text == "This server cannot be used. Nothing listens there."


def test_the_json_shape_is_stable() -> None:
    """Documented in `context.doctor_report`; keys are only ever added."""
    told = as_json(chart(), advice(chart(), {}, connect=True), LIMIT)
    assert list(told) == [
        "schema",
        "complete",
        "usable",
        "url",
        "local",
        "kind",
        "version",
        "model",
        "models",
        "problem",
        "ended",
        "window",
        "findings",
        "measurements",
        "savings",
        "settings",
        "sent",
    ]
    assert told["window"] == {"tokens": 8192, "source": "/props (n_ctx)", "trained_only": False}
    assert told["measurements"]["continuation"] == {"computed": 20, "cached": 403, "first_token_s": 0.25}
    assert told["settings"][0] == {
        "key": "base_url",
        "value": "http://127.0.0.1:8080/v1",
        "line": 'base_url = "http://127.0.0.1:8080/v1"',
        "why": "this server",
        "set_already": False,
    }
    assert told["sent"]["at_most"]["prompt_tokens"] == LIMIT.tokens
