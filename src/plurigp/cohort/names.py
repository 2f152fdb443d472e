"""Named windows and sets of codes, and what a specification writes by their help."""

from plurigp.cohort.patterns import SET_MARK, Pattern, parse_pattern
from plurigp.cohort.toml_lines import Place, Section, TomlText, a_list
from plurigp.cohort.windows import Window, parse_window
from plurigp.core.text import nearest, show


class Names:
    """The file's named windows and sets of codes, and what is written by their help."""

    def __init__(self, file: TomlText) -> None:
        self.file = file
        windows = Section(file, ("windows",), file.data.get("windows", {}))
        self.windows = {name: windows.get(name, parse_window) for name in windows.settings}
        sets = Section(file, ("sets",), file.data.get("sets", {}))
        self.sets = {name: sets.each(name, parse_pattern) for name in sets.settings}

    def places(self, key: str) -> list[Place]:
        """The places of the tables in a list such as [[feature]]."""
        entries = self.file.data.get(key, [])
        if not isinstance(entries, list):
            raise self.file.error((key,), f"must be a list of tables; write [[{key}]].")
        return [(key, number) for number in range(len(entries))]

    def window(self, section: Section, key: str = "window") -> Window:
        """A window written out, or the name of one of [windows]."""
        value = section.settings.get(key)
        if isinstance(value, str):
            if value not in self.windows:
                known = ", ".join(self.windows) or "none"
                hint = nearest(value, self.windows)
                raise section.error(key, f"there is no window {show(value, 60)} in [windows]; known: {known}.{hint}")
            return self.windows[value]
        return section.get(key, parse_window)

    def patterns(self, section: Section, key: str = "codes", death: bool = False) -> tuple[Pattern, ...]:
        """Codes written out; "@name" stands for a set of [sets]. Only an outcome may be death."""
        found: list[Pattern] = []
        for number, entry in enumerate(section.get(key, a_list)):
            if isinstance(entry, str) and entry.startswith(SET_MARK):
                name = entry[1:]
                if name not in self.sets:
                    hint = nearest(name, self.sets)
                    place = (*section.place, key, number)
                    raise self.file.error(place, f"there is no set {show(name, 60)} in [sets].{hint}")
                found += self.sets[name]
        found += section.each(key, lambda entry: entry if _is_set(entry) else parse_pattern(entry))
        listed = tuple(dict.fromkeys(entry for entry in found if isinstance(entry, Pattern)))
        if not listed:
            raise section.error(key, "names no code; name at least one.")
        if not death and any(pattern.kind == "death" for pattern in listed):
            raise section.error(key, 'death can only be an outcome; write [[outcome]] with codes = ["death"].')
        return listed


def _is_set(entry: object) -> bool:
    return isinstance(entry, str) and entry.startswith(SET_MARK)
