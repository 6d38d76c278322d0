"""Which language a person writes (I11, case 125): a wrong name is worse than none, for the summary follows it."""

from __future__ import annotations

import pytest

from marextui.context.language import detect_language

SAID = """
English | Please fix the parser, the tests do not pass and I do not know why
English | I need a parser to handle a list of items in a file
English | can you do it for a while and then see if it is ok
English | add an option to me.py so that I can run it on a list at home, for a test
French | Corrige le parseur s'il te plaît, les tests ne passent pas et je ne sais pas pourquoi
German | Bitte repariere den Parser, die Tests laufen nicht und ich weiß nicht warum
Spanish | Por favor arregla el parser, las pruebas no pasan y no sé por qué
Italian | Per favore correggi il parser, i test non passano e non so perché
Portuguese | Por favor corrige o parser, os testes não passam e eu não sei porquê
Dutch | Los de parser op, de tests slagen niet en ik weet niet waarom
Polish | Proszę napraw parser, testy nie przechodzą i nie wiem dlaczego tak jest
Czech | Prosím oprav parser, testy neprocházejí a já nevím proč to tak je
Swedish | Snälla fixa parsern, testerna går inte igenom och jag vet inte varför
Danish | Vær venlig at rette parseren, testene går ikke igennem af en grund jeg ikke kender
Norwegian | Vær så snill å fikse parseren, testene går ikke gjennom og jeg vet ikke hva som skal gjøres
Finnish | Korjaa jäsennin, testit ei mene läpi ja en tiedä miksi se on niin
Hungarian | Kérlek javítsd meg az elemzőt, a tesztek nem futnak le és nem tudom, hogy miért
Romanian | Te rog repară parserul, testele nu trec și nu știu de ce, este urgent pentru că pleacă
Turkish | Lütfen ayrıştırıcıyı düzelt, testler geçmiyor ve nedenini bilmiyorum ama çok önemli
Vietnamese | Làm ơn sửa bộ phân tích, các bài kiểm tra không chạy được và tôi không biết vì sao
Indonesian | Tolong perbaiki parser ini, tes tidak lulus dan saya tidak tahu kenapa
Russian | Пожалуйста, исправь парсер, тесты не проходят, и я не знаю, почему вышло так
Ukrainian | Будь ласка, виправ парсер, тести не проходять і я не знаю чому
Belarusian | Калі ласка, выпраў парсер, тэсты не праходзяць і я не ведаю чаму
Serbian | Молим те поправи парсер, тестови не пролазе и не знам зашто, њихов излаз је чудан
Bulgarian | Моля, поправи парсера, тестовете не минават и не знам защо, трябва бързо да стане, първо виж
Arabic | من فضلك أصلح المحلل، الاختبارات لا تنجح ولا أعرف السبب
Persian | لطفا تجزیه گر را درست کن، چرا پاس نمی شود
Chinese | 请修复解析器，测试没有通过
Japanese | パーサーを直してください、テストが通りません
"""


@pytest.mark.parametrize(
    ("language", "said"), [tuple(line.split(" | ")) for line in SAID.strip().splitlines()], ids=lambda x: x[:12]
)
def test_a_sentence_tells_its_language(language: str, said: str) -> None:
    assert detect_language(said) == language


@pytest.mark.parametrize("said", ["", "go on", "ok", "src/a.py", "42", "def a(i, v, z): return i", "npm run dev"])
def test_too_little_tells_none(said: str) -> None:
    assert detect_language(said) == ""
