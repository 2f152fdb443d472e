"""From the specification's code lists to the keys of events: which keys belong to which list, under which label."""

from collections.abc import Iterable

from plurigp.cohort.engines import Engine
from plurigp.cohort.patterns import Pattern
from plurigp.cohort.sources import Records
from plurigp.cohort.specification import Specification
from plurigp.cohort.sql import among, any_of, values
from plurigp.core.types import DataError

LABELS = "plurigp_labels"  # label (a number), list (a number), name (of its column)


class Matching:
    """The tables of matched keys, one per dictionary, and the events that they select."""

    def __init__(self, engine: Engine, records: Records, spec: Specification) -> None:
        self._engine, self._records = engine, records
        self._tables = {name: f"plurigp_codes_{i}" for i, name in enumerate(records.dictionaries)}
        self._lists: dict[str, set[int]] = {}
        self._dictionaries: list[str] = []
        self.unmatched: list[tuple[str, str]] = []  # (name of the list, its pattern) without any code in the source
        self._match(spec)
        self._views = {stream: f"plurigp_events_{i}" for i, stream in enumerate(records.streams)}
        for stream, view in self._views.items():
            if self._lists[stream.dictionary]:
                table = self._tables[stream.dictionary]
                made = (
                    f"TABLE {view} AS\n{stream.matched(table)}"
                    if stream.is_text
                    else f"VIEW {view} AS\n{stream.events()}"
                )
                engine.run(f"events: {stream.name}", f"CREATE TEMP {made}")

    def events(self, lists: Iterable[int], columns: str, where: str) -> str:
        """The events `e` of some lists, with their keys' list and label in `k`, as one query.

        `where` may begin with a JOIN; it is put after the FROM.
        """
        asked = set(lists)
        parts = [
            f"SELECT {columns} FROM {self._views[stream]} e "
            f"JOIN {self._tables[stream.dictionary]} k ON k.key = e.key AND {among('k.list', sorted(asked))} {where}"
            for stream in self._records.streams
            if asked & self._lists[stream.dictionary]
        ]
        return "\nUNION ALL\n".join(parts)

    def any_events(self, lists: Iterable[int]) -> bool:
        """Whether the source has any key of these lists."""
        return bool(set(lists) & set().union(*self._lists.values()))

    def untimed_events(self) -> list[str]:
        """Notes on events in text files whose time cannot be read."""
        notes = []
        for stream, view in self._views.items():
            if stream.is_text and self._lists[stream.dictionary]:
                found = self._engine.fetch(
                    f"times: {stream.name}", f"SELECT count(*) AS n, count(time) AS timed FROM {view}"
                )
                n, timed = int(found["n"][0]), int(found["timed"][0])
                if timed < n:
                    notes.append(f"{stream.name}: {1 - timed / n:.1%} of the events have no readable time")
        return notes

    def vocabularies(self) -> list[str]:
        """How the codes of the source begin, the most frequent first; for the message that none of them fits."""
        starts: list[str] = []
        for table in self._dictionaries:
            found = self._engine.fetch(
                "how its codes begin",
                "SELECT start FROM (SELECT substr(code, 1, strpos(code, '/')) AS start, count(*) AS n "
                f"FROM {table} WHERE strpos(code, '/') BETWEEN 2 AND 30 GROUP BY 1) s ORDER BY n DESC, start LIMIT 8",
            )
            starts += [str(start) for start in found["start"]]
        return list(dict.fromkeys(starts))

    def _match(self, spec: Specification) -> None:
        numbered = [(n, p) for n, (_, patterns) in enumerate(spec.code_lists) for p in patterns if p.kind != "death"]
        if self._records.ancestors is None and any(p.kind == "ancestor" for _, p in numbered):
            raise DataError(
                'codes "ancestor/..." need the OMOP table concept_ancestor, which the source lacks; load it.'
            )
        if "concepts" not in self._records.dictionaries and any(p.kind == "concept" for _, p in numbered):
            raise DataError('codes "concept/..." are OMOP\'s; in other forms name the codes themselves.')
        found: set[int] = set()
        for name, dictionary in self._records.dictionaries.items():
            scope = [
                (place, n, p)
                for place, (n, p) in enumerate(numbered)
                if p.text.startswith(dictionary.scope) and (p.kind in ("code", "prefix") or not dictionary.scope)
            ]
            found |= self._hits(name, scope, spec)
        lists = spec.code_lists
        self.unmatched = [(lists[n][0], str(p)) for place, (n, p) in enumerate(numbered) if place not in found]
        self._number_labels()

    def _hits(self, name: str, scope: list[tuple[int, int, Pattern]], spec: Specification) -> set[int]:
        """Match one dictionary; returns the places of the patterns that found something."""
        hits = f"plurigp_hits_{list(self._tables).index(name)}"
        queries = self._queries(name, scope, _groups(spec)) if scope else []
        if not queries:
            self._lists[name] = set()
            self._engine.run(
                f"no code list looks into: {name}",
                f"CREATE TEMP TABLE {hits} AS SELECT CAST(NULL AS INTEGER) AS place, CAST(NULL AS INTEGER) AS list, "
                "CAST(NULL AS BIGINT) AS key, CAST(NULL AS VARCHAR) AS name WHERE FALSE",
            )
            return set()
        self._engine.run(
            f"codes that the lists name: {name}", f"CREATE TEMP TABLE {hits} AS\n" + "\nUNION ALL\n".join(queries)
        )
        counted = self._engine.fetch(f"how many: {name}", f"SELECT DISTINCT place, list FROM {hits}")
        self._lists[name] = {int(n) for n in counted["list"]}
        return {int(place) for place in counted["place"]}

    def _queries(
        self, name: str, scope: list[tuple[int, int, Pattern]], groups: dict[int, int | str | None]
    ) -> list[str]:
        """One query per way of matching and length of prefix, so that all are hash joins."""
        rows = [
            (place, n, p.kind, p.text, p.number, len(p.text), p.text.rfind("/") + 1, _characters(groups.get(n)))
            for place, n, p in scope
        ]
        columns = ("place", "list", "way", "text", "number", "length", "base", "characters")
        suffix = list(self._tables).index(name)
        patterns = f"plurigp_patterns_{suffix}"
        self._engine.run(
            f"the patterns for: {name}", f"CREATE TEMP TABLE {patterns} AS SELECT * FROM {values(rows, 'p', columns)}"
        )
        ways = {p.kind for _, _, p in scope}
        queries = []
        if ways & {"code", "prefix"}:
            known = f"plurigp_dictionary_{suffix}"
            query = self._records.dictionaries[name].query
            self._engine.run(f"the codes of the source: {name}", f"CREATE TEMP TABLE {known} AS {query}")
            self._dictionaries.append(known)
            label = (
                "CASE WHEN p.characters > 0 THEN substr(replace(substr(d.code, p.base + 1), '.', ''), 1, p.characters) "
                "ELSE '' END"
            )
            select = f"SELECT p.place, p.list, d.key, {label} AS name FROM {known} d JOIN {patterns} p ON"
            if "code" in ways:
                queries.append(f"{select} p.way = 'code' AND p.text = d.code")
            lengths = sorted({len(p.text) for _, _, p in scope if p.kind == "prefix"})
            queries += [
                f"{select} p.way = 'prefix' AND p.length = {n} AND p.text = substr(d.code, 1, {n})" for n in lengths
            ]
        if ways & {"concept", "ancestor"}:
            name_of = "CASE WHEN p.characters < 0 THEN CAST(p.number AS VARCHAR) ELSE '' END"
            queries.append(
                f"SELECT p.place, p.list, CAST(p.number AS BIGINT) AS key, {name_of} AS name FROM {patterns} p "
                "WHERE p.way IN ('concept', 'ancestor')"
            )
        if "ancestor" in ways:
            queries.append(
                f"SELECT p.place, p.list, a.key, {name_of} AS name FROM {patterns} p "
                f"JOIN ({self._records.ancestors}) a ON a.ancestor = p.number WHERE p.way = 'ancestor'"
            )
        return queries

    def _number_labels(self) -> None:
        hits = [f"SELECT DISTINCT list, name FROM plurigp_hits_{i}" for i in range(len(self._tables))]
        self._engine.run(
            "a number for every list and label",
            f"CREATE TEMP TABLE {LABELS} AS SELECT CAST(row_number() OVER (ORDER BY list, name) AS INTEGER) AS label, "
            f"list, name FROM ({' UNION '.join(hits)}) h",
        )
        for i, (name, table) in enumerate(self._tables.items()):
            self._engine.run(
                f"keys of events by list and label: {name}",
                f"CREATE TEMP TABLE {table} AS SELECT DISTINCT h.list, h.key, l.label FROM plurigp_hits_{i} h "
                f"JOIN {LABELS} l ON l.list = h.list AND l.name = h.name WHERE h.key IS NOT NULL",
            )


def _groups(spec: Specification) -> dict[int, int | str | None]:
    return {spec.number_of(feature): feature.group for feature in spec.features if feature.patterns}


def _characters(group: int | str | None) -> int:
    return group if isinstance(group, int) else -1 if group == "ancestor" else 0


def in_windows(parts: Iterable[tuple[int, str]]) -> str:
    """Whether an event `e` of a patient `c` lies in the window of its list `k.list`; parts are (list, window).

    A window without a name is open at both ends: events without a time, such as the static ones of MEDS, lie in it.
    """
    by_window: dict[str, list[int]] = {}
    for number, window in parts:
        by_window.setdefault(window, []).append(number)
    day = "CAST(e.time AS DATE)"
    return any_of(
        f"({among('k.list', numbers)} AND {day} BETWEEN c.{window}_from AND c.{window}_to)"
        if window
        else among("k.list", numbers)
        for window, numbers in by_window.items()
    )
