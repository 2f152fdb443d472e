"""What a specification may write where codes are named."""

from dataclasses import dataclass

DEATH = "death"
SET_MARK = "@"
CONCEPT, ANCESTOR = "concept/", "ancestor/"  # by OMOP's concept ids


@dataclass(frozen=True)
class Pattern:
    """A code, the beginning of codes ("ICD10/G20*"), a concept id, an ancestor's id, or the patient's death."""

    kind: str  # "code", "prefix", "concept", "ancestor" or "death"
    text: str = ""
    number: int = 0

    def __str__(self) -> str:
        spelled = {"code": self.text, "prefix": f"{self.text}*", "death": DEATH}
        return spelled.get(self.kind, f"{self.kind}/{self.number}")


def parse_pattern(text: object) -> Pattern:
    """One entry of a list of codes; a `*` at the end stands for any continuation, and nowhere else for anything."""
    if not isinstance(text, str) or not text.strip():
        raise ValueError('must be text such as "ICD10/G20", "ICD10/G20*" or "@set"')
    entry = text.strip()
    if entry.lower() == DEATH:
        return Pattern("death")
    for start in (CONCEPT, ANCESTOR):
        if entry.lower().startswith(start):
            number = entry[len(start) :]
            if not (number.isascii() and number.isdigit() and len(number) <= 18):
                raise ValueError(f'must give a concept id after "{start}", such as "{start}201826"')
            return Pattern(start.rstrip("/"), number=int(number))
    if entry.endswith("*"):
        return Pattern("prefix", entry[:-1])
    return Pattern("code", entry)
