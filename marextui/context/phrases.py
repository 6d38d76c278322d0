"""The few sentences of ours that a model reads as part of the conversation, in the user's language (I11, case 125).

An English sentence between a person's French ones is what turns the next answer English.
"""

from __future__ import annotations

from collections.abc import Mapping

_NOTED: Mapping[str, str] = {
    "English": "Noted as the record of our earlier conversation; I continue from there.",
    "French": "C'est noté comme compte rendu de notre échange précédent ; je continue à partir de là.",
    "German": "Als Stand unseres bisherigen Gesprächs notiert; ich mache von dort weiter.",
    "Spanish": "Anotado como registro de nuestra conversación anterior; continúo desde ahí.",
    "Italian": "Annotato come resoconto della nostra conversazione precedente; continuo da lì.",
    "Portuguese": "Anotado como registro da nossa conversa anterior; continuo a partir daí.",
    "Dutch": "Genoteerd als verslag van ons eerdere gesprek; ik ga van daaruit verder.",
    "Russian": "Записано как итог нашего предыдущего разговора; продолжаю с этого места.",
    "Chinese": "已记录为我们之前对话的内容，我从这里继续。",
    "Japanese": "これまでの会話の記録として承知しました。ここから続けます。",
    "Korean": "지금까지의 대화 기록으로 확인했습니다. 여기서부터 이어 가겠습니다.",
}
_GO_ON: Mapping[str, str] = {
    "English": "Your answer was cut off here by an error. Go on from this point without repeating what you wrote.",
    "French": "Ta réponse a été coupée ici par une erreur. Continue à partir de là sans répéter ce qui est écrit.",
    "German": "Deine Antwort brach hier wegen eines Fehlers ab. Mach von hier weiter, ohne etwas zu wiederholen.",
    "Spanish": "Tu respuesta se cortó aquí por un error. Continúa desde este punto sin repetir lo que ya escribiste.",
    "Italian": "La tua risposta si è interrotta qui per un errore. Continua da qui senza ripetere quanto scritto.",
    "Portuguese": "A tua resposta foi cortada aqui por um erro. Continua a partir daqui sem repetir o que escreveste.",
    "Dutch": "Je antwoord werd hier door een fout afgebroken. Ga vanaf hier verder zonder te herhalen wat er staat.",
    "Russian": "Твой ответ оборвался здесь из-за ошибки. Продолжай с этого места, не повторяя написанное.",
    "Chinese": "你的回答在这里因错误中断。请从这里继续，不要重复已经写过的内容。",
    "Japanese": "回答はここでエラーのため途切れました。書いた内容を繰り返さず、ここから続けてください。",
    "Korean": "답변이 오류로 여기서 끊겼습니다. 이미 쓴 내용을 반복하지 말고 여기서부터 이어 주세요.",
}


def noted(language: str) -> str:
    """What the assistant half of a summary pair says; English for a language (its English name) we have no words in."""
    return _NOTED.get(language, _NOTED["English"])


def go_on(language: str) -> str:
    """What asks a model to finish an answer that was cut off."""
    return _GO_ON.get(language, _GO_ON["English"])


def sentence(fragment: str) -> str:
    """A reason as a sentence of its own: a capital first, a full stop last; "" stays. Names in code keep their case."""
    text = fragment.strip()
    first = text.partition(" ")[0]
    if first.isalpha() and first.islower():
        text = text[0].upper() + text[1:]
    return text if not text or text[-1] in ".!?…。！？" else f"{text}."
