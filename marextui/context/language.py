"""The language of a text, by script and commonest words: enough to keep a summary in the user's language (I11)."""

from __future__ import annotations

import re

_COMMON = {
    "English": "the is are to of and in it that you for with this on can please be do not what how have add should we",
    "French": "le la les des est une un et dans pour que qui avec sur pas nous vous je il elle ce cette ne du au de",
    "German": "der die das und ist nicht ein eine zu mit den auf für ich wir du bitte von im auch soll kann wie dem es",
    "Spanish": "el la los las es una un y en para que con por no se de del lo me como puedes más está favor al su",
    "Italian": "il lo la gli le è una un e in per che con non si di del della mi come puoi più sono questo questa",
    "Portuguese": "o a os as é uma um e em para que com não se de do da por favor me como você mais isso está no na",
    "Dutch": "de het een en is niet van voor met op dat ik je wij kan deze dit zijn maar ook als naar er te in",
}
_WORDS = {language: frozenset(words.split()) for language, words in _COMMON.items()}
_SCRIPTS = (
    ("Japanese", re.compile(r"[\u3040-\u30ff]")),
    ("Korean", re.compile(r"[\uac00-\ud7af\u1100-\u11ff]")),
    ("Chinese", re.compile(r"[\u4e00-\u9fff]")),
    ("Russian", re.compile(r"[\u0400-\u04ff]")),
    ("Arabic", re.compile(r"[\u0600-\u06ff]")),
    ("Hebrew", re.compile(r"[\u0590-\u05ff]")),
    ("Greek", re.compile(r"[\u0370-\u03ff]")),
    ("Hindi", re.compile(r"[\u0900-\u097f]")),
    ("Thai", re.compile(r"[\u0e00-\u0e7f]")),
)
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_CODE_SIGNS = frozenset("/\\_(){}=<>")
_ENOUGH = 20_000
"""Characters that tell a language; more only cost time."""
_MIN_WORDS = 2


def detect_language(text: str) -> str:
    """English name of the language of `text`, code left out; "" when there is too little to tell."""
    bare = _CODE.sub(" ", text[:_ENOUGH])
    prose = " ".join(word for word in bare.split() if not _CODE_SIGNS.intersection(word))
    letters = sum(c.isalpha() for c in prose)
    for language, pattern in _SCRIPTS:
        if letters and len(pattern.findall(prose)) > 0.2 * letters:
            return language
    words = re.findall(r"[^\W\d_]+", prose.lower())
    scores = {language: sum(w in common for w in words) for language, common in _WORDS.items()}
    best = max(scores, key=lambda language: scores[language])
    second = max(score for language, score in scores.items() if language != best)
    if scores[best] < _MIN_WORDS or scores[best] == second:
        return ""
    return best
