"""The language of a text, by script and commonest words: enough to keep a summary in the user's language (I11)."""

from __future__ import annotations

import re

_COMMON = {
    "English": "the is are to of and in it that you for with this on can please be do not what how have add we a an i",
    "French": "le la les des est une un et dans pour que qui avec sur pas nous vous je il elle ce cette ne du au de",
    "German": "der die das und ist nicht ein eine zu mit den auf für ich wir du bitte von im auch soll kann wie dem es",
    "Spanish": "el la los las es una un y en para que con por no se de del lo me como puedes más está favor al su",
    "Italian": "il lo la gli le è una un e in per che con non si di del della mi come puoi più sono questo questa",
    "Portuguese": "o a os as é uma um e em para que com não se de do da por favor me como você mais isso está no na",
    "Dutch": "de het een en is niet van voor met op dat ik je wij kan deze dit zijn maar ook als naar er te in",
    # none of these words is an English, French or Spanish one: "a", "to", "for", "de"
    "Polish": "w nie na się że jest jak ale tak za od czy proszę dlaczego jestem już tylko może wiem są oraz przez",
    "Czech": "na že jak ale proč prosím není tak já aby jsem už jen bude nebo také když nevím jsou který podle byl",
    "Swedish": "och att det är på som inte av jag kan till om du så vad ska måste snälla varför från också eller den",
    "Danish": "og det er på som ikke af jeg kan til hvad skal hvorfor fra være vær eller også så det nogen mig blev",
    "Norwegian": "og det er på som ikke av jeg kan til hva skal hvorfor fra være vær eller også så gjennom meg ble",
    "Finnish": "ja ei että mutta kun niin ole tämä minä jos miksi mitä voi ovat kiitos korjaa myös vain en tiedä sitä",
    "Hungarian": "az és nem hogy egy ez meg kérlek miért mert csak már azt vagy mint kell lehet ezt majd van nincs",
    "Romanian": "și nu din care mai pentru sunt dar îmi acest această trebuie nici ce să că cu pe este te rog în fi",
    "Turkish": "ve bir bu için ile lütfen değil ama yok çok gibi neden daha olarak kadar sonra mi nasıl şu olan var",
    "Vietnamese": "là và của có không được cho các một này với tôi bạn làm ơn những đã sẽ như nhưng vì khi hãy nó",
    "Indonesian": "dan yang itu dengan untuk tidak dari saya ke pada ada akan bisa tolong kamu juga atau kenapa sudah",
}
_WORDS = {language: frozenset(words.split()) for language, words in _COMMON.items()}
_SCRIPTS = (
    ("Japanese", re.compile(r"[\u3040-\u30ff]")),
    ("Korean", re.compile(r"[\uac00-\ud7af\u1100-\u11ff]")),
    ("Chinese", re.compile(r"[\u4e00-\u9fff]")),
    ("Cyrillic", re.compile(r"[\u0400-\u04ff]")),
    ("Arabic", re.compile(r"[\u0600-\u06ff]")),
    ("Hebrew", re.compile(r"[\u0590-\u05ff]")),
    ("Greek", re.compile(r"[\u0370-\u03ff]")),
    ("Hindi", re.compile(r"[\u0900-\u097f]")),
    ("Thai", re.compile(r"[\u0e00-\u0e7f]")),
)
_BY_LETTERS = {
    "Cyrillic": (
        ("Ukrainian", "іїєґ"),
        ("Belarusian", "ўіыэё"),
        ("Serbian", "јљњћђ"),
        ("Russian", "ыэё"),
        ("Bulgarian", "ъ"),
    ),
    "Arabic": (("Urdu", "ےیکپچگٹڈڑں"), ("Persian", "یکپچژگ")),
}
"""Languages of one script by their own letters, of which the first must stand there; without any, `_MOSTLY`."""
_MOSTLY = {"Cyrillic": "Russian"}
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
            return _of_script(language, prose.lower())
    words = re.findall(r"[^\W\d_]+", prose.lower())
    scores = {language: sum(w in common for w in words) for language, common in _WORDS.items()}
    best = max(scores, key=lambda language: scores[language])
    second = max(score for language, score in scores.items() if language != best)
    if scores[best] < _MIN_WORDS or scores[best] == second:
        return ""
    return best


def _of_script(script: str, prose: str) -> str:
    """The language of `prose`, which is in a script that several share."""
    there = ((language, letters) for language, letters in _BY_LETTERS.get(script, ()) if letters[0] in prose)
    own = {language: sum(map(prose.count, letters)) for language, letters in there}
    best = max(own, key=lambda language: own[language], default="")
    return best or _MOSTLY.get(script, script)
