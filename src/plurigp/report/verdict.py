"""Whether there are subtypes, group by group and each by itself, in words: for the page and for the terminal."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from plurigp.report import words
from plurigp.study.subtypes import GROUP, PART, REMAINDER, REST

HARDLY = 0.05  # nats per patient that are not worth a ratio of probabilities
Line = Mapping[Any, Any]  # of the frame of subtypes


@dataclass(frozen=True)
class Grouped:
    """The strata of a study by what they are to each other; numbers as in the frame of subtypes."""

    alone: list[int]  # groups of one stratum, without the rest
    joined: list[list[int]]  # groups of several, with no valley that divides them, without the rest
    rest: list[int]  # the group of more than three quarters of the patients, if there is one
    shares: dict[int, float]  # of each stratum

    def share(self, strata: list[int]) -> float:
        """Of the patients, those in these strata."""
        return sum(self.shares[k] for k in strata)


def grouped(facts: Mapping[str, Any], subtypes: pd.DataFrame) -> Grouped:
    """The strata by their groups; in a continuum they are one group."""
    shares = dict(zip(subtypes["subtype"].astype(int), subtypes["share"].astype(float), strict=True))
    groups = [own["subtype"].astype(int).to_list() for _, own in subtypes.groupby("group", sort=True)]
    made = Grouped([own[0] for own in groups if len(own) == 1], [own for own in groups if len(own) > 1], [], shares)
    large = [own for own in groups if made.share(own) > REMAINDER]
    if words.is_continuum(facts) or not large:
        return made
    rest = large[0]
    return Grouped([k for k in made.alone if [k] != rest], [own for own in made.joined if own != rest], rest, shares)


def headline(facts: Mapping[str, Any], subtypes: pd.DataFrame) -> str:
    """What was found, in one sentence without its full stop."""
    K = len(subtypes)
    if K < 2:
        return (
            "treated as one group" if facts["choice"] == "given" else "no subtypes were detected; treated as one group"
        )
    if words.is_continuum(facts):
        asked = "requested " if facts["choice"] == "given" else ""
        return f"no subtypes were detected; treated as a continuum, described by {words.in_words(K)} {asked}strata"
    found = grouped(facts, subtypes)
    if found.rest:
        return f"{_apart_from_rest(found)} from the rest, which form a continuum"
    if not found.joined:
        how = "standing apart from each other" if K == 2 else "each standing apart from the others"
        return f"{words.in_words(K)} subtypes, {how}"
    parts = [_stand_apart(found.alone)] if found.alone else []
    parts += [f"{_numbers(own)} {_unparted(own)}" for own in found.joined]
    groups = words.in_words(len(found.alone) + len(found.joined))
    return f"{words.in_words(K)} subtypes in {groups} groups; {', '.join(parts)}"


def _apart_from_rest(found: Grouped) -> str:
    groups = [[k] for k in found.alone] + found.joined
    shares = [words.percent(found.share(own)) for own in groups]
    if len(groups) == 1:
        return f"one group of {shares[0]} stands apart"
    return f"{words.in_words(len(groups))} groups, of {words.listed(shares)}, stand apart"


def _stand_apart(strata: list[int]) -> str:
    return f"{_numbers(strata)} {'stands' if len(strata) == 1 else 'stand'} apart"


def _unparted(strata: list[int]) -> str:
    """Of several, two may have a valley between them and be joined by a third."""
    return "have no clear valley between them" if len(strata) == 2 else "form a continuum"


def _numbers(strata: list[int]) -> str:
    return words.SUBTYPES.numbers([str(k) for k in strata]).lower()


# --- one stratum, one pair ---


def badge(line: Line) -> tuple[str, str]:
    """The verdict on one stratum in a word or two, and the style of its mark."""
    if line["kind"] == GROUP:
        return ("✓ stands apart", "yes") if line["robust"] else ("? tentative", "no")
    return {PART: ("part of a continuum", "no"), REST: ("the rest", "plain")}[line["kind"]]


def evidence(line: Line, facts: Mapping[str, Any]) -> str:
    """How far one stratum is from the one it is least apart from, and how well it is found again."""
    word, other = words.parts_of(facts), f"{words.parts_of(facts).one} {int(line['nearest'])}"
    other += ", the nearest" if facts["n_strata"] > 2 else ""
    test = words.p_is(line["valley_p"])
    if line["kind"] == PART:
        start = f"No clear valley divides it from {other}: "
        test += " before correction for the number of borders" if line["valley_p"] <= facts["level"] else ""
    else:
        start = f"A valley divides it from {other}: "
    centres = f"; the centres are {words.number(line['separation'], 2)} standard deviations apart"
    centres = centres if math.isfinite(line["separation"]) else ""
    halves = f"Maps of separate halves keep {words.percent(line['agreement'])} of its pairs together."
    valley = f"{start}between them {fullness(line['depth'])} ({test}){centres}."
    return f"{valley} {halves} {_gained(line['unseen_gain'], word)}"


def fullness(depth: float) -> str:
    """How full the middle between two strata is."""
    if not math.isfinite(depth):
        return "nobody was counted, because maps of halves overlap there or have no such cluster"
    share = "at least" if not depth < 1 else words.percent(depth)
    return f"patients are {share} as dense as at the thinner of the two"


def _gained(nats: float, word: words.Parts) -> str:
    """Nats per unseen patient, as the ratio of probabilities that they stand for."""
    said = f"{words.signed(nats)} nats each"
    if not nats >= HARDLY:
        better = "hardly better than" if nats > 0 else "no better than"
        return f"The {word.many} describe its unseen patients {better} a single cloud does ({said})."
    ratio = words.number(math.exp(min(nats, 50.0)), 2)
    than = f"as probable with the {word.many} as in a single cloud"
    return f"Its unseen patients are typically {ratio} times {than} ({said})."


def is_bridged(line: Line, n_strata: int, level: float) -> bool:
    """Whether two strata of one group have a valley between them that others lead around.

    By Bonferroni's correction, which is at least as strict as Hochberg's: a valley that passes it and does not divide
    the patients is one that others lead around.
    """
    return not line["apart"] and float(line["p"]) * (n_strata - 1) <= level


def bridges(facts: Mapping[str, Any], separations: pd.DataFrame) -> str:
    """The pairs of strata with a valley that others lead around, in a sentence; empty without any."""
    K, word = facts["n_strata"], words.parts_of(facts)
    pairs = [line for line in separations.to_dict("records") if is_bridged(line, K, facts["level"])]
    if not pairs:
        return ""
    named = words.listed([f"{int(line['subtype'])} and {int(line['other'])}" for line in pairs])
    third = {1, 2, 3} - {int(pairs[0][end]) for end in ("subtype", "other")}
    joined = f"{word.one} {third.pop()} joins" if K == 3 and len(pairs) == 1 else "others join"
    start = "There is a valley between" if len(pairs) == 1 else "There are valleys between"
    return f"{start} {word.many} {named}, but {joined} them."


def closest(facts: Mapping[str, Any], subtypes: pd.DataFrame) -> str:
    """Which stratum of a continuum is closest to standing apart, and how far from it; empty where that is not asked."""
    if len(subtypes) < 2 or not words.is_continuum(facts):
        return ""
    line = min(subtypes.to_dict("records"), key=lambda line: line["valley_p"])
    pair = words.STRATA.numbers([str(k) for k in sorted(int(line[end]) for end in ("subtype", "nearest"))]).lower()
    test = words.p_is(line["valley_p"])
    return f"What comes closest to a valley is between {pair}: there {fullness(line['depth'])} ({test})."


def references(facts: Mapping[str, Any], p: np.ndarray) -> str:
    """How often structureless tables, of which these are the p-values [R], showed groups; empty without any."""
    level = facts["level"]
    if not len(p):
        return ""
    n = int((p <= level).sum())
    drawn = words.counted(len(p), "structureless table")
    return f"Of {drawn} drawn from the map, {n or 'none'} showed groups at the level of {words.percent(level)}."
