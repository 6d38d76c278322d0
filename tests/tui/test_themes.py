"""Themes: the shipped ones are readable, and a broken one of the user's is a sentence, not a crash (case 28)."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.color import Color
from textual.theme import Theme

from marextui.tui.panes.gauge import GaugePane
from marextui.tui.themes import DEFAULT_THEME, ThemeProblem, load_themes, parse_theme
from tests.stubs.frames import frame
from tests.stubs.mini_app import MiniApp
from tests.tui.test_gauge import HALF

SHIPPED = {theme.name: theme for theme in load_themes(None)[0]}
FOREGROUNDS = (
    "foreground",
    "text-muted",
    "text-primary",
    "text-secondary",
    "text-accent",
    "text-success",
    "text-warning",
    "text-error",
)
BACKGROUNDS = ("background", "surface", "panel", "primary-muted", "secondary-muted")


def luminance(color: Color) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [c / 255 for c in color.rgb]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: Color, b: Color) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def resolved(value: str, background: Color) -> Color:
    """A variable's value as it looks on `background`."""
    name, _, share = value.partition(" ")
    alpha = float(share.rstrip("%")) / 100 if share else 1.0
    color = background.get_contrast_text(alpha) if name == "auto" else Color.parse(name).multiply_alpha(alpha)
    return background.blend(color, color.a)


def test_the_four_themes_are_shipped() -> None:
    themes, problems = load_themes(None)
    assert problems == []
    assert {t.name for t in themes} == {"marex-dark", "marex-light", "high-contrast", "terminal"}
    assert DEFAULT_THEME in SHIPPED


def pairs(theme: Theme) -> list[tuple[str, str, float]]:
    variables = theme.to_color_system().generate()
    out = []
    for back in BACKGROUNDS:
        background = Color.parse(variables[back])
        for fore in FOREGROUNDS:
            out.append((fore, back, contrast(resolved(variables[fore], background), background)))
    cursor = Color.parse(variables["block-cursor-background"])
    return [*out, ("cursor", "cursor", contrast(resolved(variables["block-cursor-foreground"], cursor), cursor))]


@pytest.mark.parametrize("name", ["marex-dark", "marex-light", "high-contrast"])
def test_every_text_has_a_contrast_of_at_least_four_and_a_half(name: str) -> None:
    poor = [(fore, back, round(c, 2)) for fore, back, c in pairs(SHIPPED[name]) if c < 4.5]
    assert poor == []


@pytest.mark.parametrize("name", ["marex-dark", "marex-light", "high-contrast"])
def test_frames_can_be_seen_with_and_without_the_focus(name: str) -> None:
    variables = SHIPPED[name].to_color_system().generate()
    surface = Color.parse(variables["surface"])
    for border in ("border", "border-blurred"):
        assert contrast(resolved(variables[border], surface), surface) >= 3, border


def test_the_contrast_measure_can_fail() -> None:
    grey = Theme("grey", primary="#777777", foreground="#777777", background="#888888", surface="#888888")
    assert any(c < 4.5 for _, _, c in pairs(grey))
    assert round(contrast(Color.parse("#000"), Color.parse("#fff")), 1) == 21.0


def test_high_contrast_is_higher() -> None:
    assert min(c for fore, back, c in pairs(SHIPPED["high-contrast"]) if not back.endswith("muted")) >= 7


def test_the_terminal_theme_uses_only_the_terminals_colours() -> None:
    theme = SHIPPED["terminal"]
    assert theme.ansi
    for value in (theme.primary, theme.foreground, theme.background, theme.error):
        assert value is not None
        assert value.startswith("ansi_")


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("name = ", "not valid TOML"),
        ('dark = true\n[colors]\nprimary = "red"', "no name"),
        ('name = "x"', "no 'primary'"),
        ('name = "x"\n[colors]\nprimary = "notacolour"', "'notacolour' (primary) is not a colour"),
        ('name = "x"\n[colors]\nprimry = "red"', "'primry' is not one of the colours"),
        ('name = "x"\ndark = "yes"\n[colors]\nprimary = "red"', "'dark' must be true or false"),
        ('name = "x"\ncolours = {}\n', "'colours' is not a key"),
        ('name = "x"\ncolors = 3', "must be a table"),
        ('name = "x"\n[colors]\nprimary = "red"\n[variables]\nborder = "blu"', "'blu' (border)"),
        ('name = "x"\n[colors]\nprimary = "red"\n[variables]\nborder = "red; color: blue"', "is not a colour"),
        ('name = "x"\n[colors]\nprimary = "red"\n[variables]\n"a b" = "red"', "not the name of a variable"),
        ('name = "x"\n[colors]\nprimary = "red"\n[variables]\nblock-cursor-text-style = "wavy"', "not a text style"),
    ],
)
def test_a_wrong_theme_says_what_is_wrong(source: str, cause: str) -> None:
    with pytest.raises(ThemeProblem) as caught:
        parse_theme(source)
    assert cause in str(caught.value)


def test_a_broken_user_theme_is_left_out_with_a_sentence_and_a_good_one_replaces(tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text("name = ")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "dir.toml").mkdir()
    (tmp_path / "mine.toml").write_text(f'name = "{DEFAULT_THEME}"\n[colors]\nprimary = "#123456"')
    themes, problems = load_themes(tmp_path)
    assert len(themes) == 4
    assert next(t for t in themes if t.name == DEFAULT_THEME).primary == "#123456"
    assert len(problems) == 3
    for file, problem in zip(("binary.toml", "broken.toml", "dir.toml"), sorted(problems), strict=True):
        assert file in problem
        assert problem.endswith(".")


def test_no_user_folder_is_no_problem(tmp_path: Path) -> None:
    assert load_themes(tmp_path / "absent")[1] == []


@pytest.mark.parametrize("name", sorted(SHIPPED))
async def test_each_theme_draws_the_same_words(name: str) -> None:
    """Colour is never the only carrier."""
    app = MiniApp(GaugePane(HALF), theme=name)
    async with app.run_test(size=(50, 18)):
        text = frame(app)
    assert "ok" in text
    assert "compaction" in text
