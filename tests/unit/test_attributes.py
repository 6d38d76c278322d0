"""Which statements of one thing exclude each other, and which go together (P10, 131, 133)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marextui.context.attributes import claim, other_value
from marextui.context.fusion import contradicts
from marextui.context.memory_keeping import replaces

EXCLUDE = """
The API is slow | The API is fast
The build is broken | The build is green again
The build is failing on main | The build is green
The migration is pending | The migration is done
The repository is private | The repository is now public
The port is 8080 | The port is 9090
The timeout is 30 seconds | The timeout is 2 minutes
The limit is 100 MB | The limit is 1 GB
The entry point is src/main.py | The entry point is src/app.py
The database is SQLite | The database is PostgreSQL
The frontend is React | The frontend is Svelte
The main branch is master | The main branch is develop
The owner is Anna | The owner is Ben
The deadline is Monday | The deadline is Thursday
Dark mode is on | Dark mode is off
The cache is enabled | The cache is disabled
The API is stable | The API is not stable
The API isn't stable | The API is stable
The default theme is dark | The default theme is light
Database: SQLite | Database: PostgreSQL
Log level: debug | Log level: info
Cache: in memory | Cache: on disk
retries = 3 | retries = 5
Cache user sessions in Redis | Cache user sessions in Memcached
Stocker les sessions dans Redis | Stocker les sessions dans Memcached
Keep the code formatted with black | Keep the code formatted with ruff-format
RATE_LIMIT = strict | RATE_LIMIT = lenient
L'API est lente | L'API est rapide
Le port est 8080 | Le port est 9090
La base de données est SQLite | La base de données est PostgreSQL
L'API est stable | L'API n'est pas stable
Le service est désactivé | Le service est activé
Les tests sont rouges | Les tests sont verts
Die API ist langsam | Die API ist jetzt schnell
Der Port ist 8080 | Der Port ist 9090
Die Datenbank ist SQLite | Die Datenbank ist PostgreSQL
Die API ist stabil | Die API ist nicht stabil
Die Seite ist öffentlich | Die Seite ist privat
Das Limit ist 30 Sekunden | Das Limit ist 60 Sekunden
Der Dienst ist aktiviert | Der Dienst ist deaktiviert
La API es lenta | La API es rápida
El puerto es 8080 | El puerto es 9090
La base de datos es SQLite | La base de datos es PostgreSQL
La API es estable | La API no es estable
El servicio está activado | El servicio está desactivado
La tarea está pendiente | La tarea está terminada
"""
TOGETHER = """
The API is slow | The public API is now fast
The build is green | The build is failing on Windows
The API is slow | The API is documented
The public API is slow | The public API is documented
The API is slow | The API is slow on large inputs too
The API is slow | The API is fast on Linux
The API is slow | The API is written in Go
The API is slow | The UI is fast
The parser is done | The lexer is pending
Step 3 is done | Step 4 is done
Step 3 is done | Step 4 is not done
The module a is done | The module b is not done
The API is not slow | The API is fast
The API is not slow | The API is not documented
The database is slow | The database is documented
The database is SQLite | The database is encrypted
The branch is main | The branch is protected
The port is 8080 | The port is open
The port is 8080 | The port is forwarded by 2 routers
The release is 3 years old | The release is 40 MB large
The tests are slow | The tests are flaky
The tests are slow | The tests are 400
The server is a Linux machine | The server is behind a proxy
The parser handles strings | The parser handles numbers
Les tests couvrent les chaînes | Les tests couvrent les nombres
Der Parser liest kurze Dateien | Der Parser liest kurze Zahlen
The cause is a race | The cause is a missing lock
It is slow | It is fast
This is done | This is pending
Note: slow | Note: fast
Bug: login fails | Bug: logout crashes
API: slow | API: documented
The file is empty | The file is locked
The service is up | The service is public
L'API est lente | L'API est documentée
L'API est lente | L'API est publique
Le port est 8080 | Le port est ouvert
La base est lente | La base est chiffrée
Les tests sont lents | Les tests sont instables
La cause est un verrou | La cause est une fuite
Die API ist langsam | Die API ist dokumentiert
Die API ist langsam | Die API ist öffentlich
Die API ist Teil des Kerns | Die API ist Grundlage des Dienstes
Die Datenbank ist langsam | Die Datenbank ist verschlüsselt
Der Port ist 8080 | Der Port ist offen
Schritt 3 ist fertig | Schritt 4 ist fertig
La API es lenta | La API es pública
La API es lenta | La API está documentada
La base de datos es lenta | La base de datos está cifrada
El puerto es 8080 | El puerto está abierto
La prueba es lenta | La prueba es inestable
"""


def _pairs(table: str) -> list[tuple[str, str]]:
    older_newer = (line.split(" | ") for line in table.strip().splitlines())
    return [(older, newer) for older, newer in older_newer]


@pytest.mark.parametrize(("older", "newer"), _pairs(EXCLUDE))
def test_two_values_of_one_attribute_exclude_each_other(older: str, newer: str) -> None:
    assert contradicts(newer, older)
    assert replaces(f"Decision: {newer}", f"Decision: {older}")


@pytest.mark.parametrize(("older", "newer"), _pairs(TOGETHER))
def test_what_can_be_said_of_one_thing_together_stays(older: str, newer: str) -> None:
    """To hide a fact that holds is worse than to keep two."""
    assert not contradicts(newer, older)
    assert not replaces(f"Decision: {newer}", f"Decision: {older}")


@given(st.text(max_size=200), st.text(max_size=200))
def test_no_text_makes_it_fail_and_nothing_excludes_itself(one: str, other: str) -> None:
    said, again = claim(one), claim(other)
    if said is not None:
        assert not other_value(said, said)
        if again is not None:
            assert other_value(said, again) in {True, False}
    assert not contradicts(one, one)
