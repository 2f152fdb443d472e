"""When training stops and how its step sizes change on the way."""

import numpy as np
import pytest

from plurigp.inference.schedule import (
    COOLDOWN_SHARE,
    DECAY_HALF_LIFE,
    DEFAULT_PASSES,
    FINAL_RATE_FACTOR,
    WARMUP_EPOCHS,
    WINDOW,
    Plateau,
    Schedule,
    enough_epochs,
    rates_of,
)


def feed(plateau: Plateau, values) -> list[float]:
    """Add totals until finished; the factor before every epoch."""
    factors = []
    for value in values:
        if plateau.finished:
            break
        factors.append(plateau.factor())
        plateau.add(float(value))
    return factors


@pytest.mark.parametrize("longest", [1, 2, 3, 5, 7, 10, 13, 50, 97, 98, 100, 102, 300])
def test_max_epochs_is_exact_while_the_bound_climbs(longest):
    plateau = Plateau(Schedule(max_epochs=longest), n_cells=100)
    assert len(feed(plateau, range(0, 10**6, 1000))) == longest


def test_a_flat_bound_cools_and_finishes():
    plateau = Plateau(Schedule(max_epochs=1000), n_cells=100)
    factors = feed(plateau, [5.0] * 1000)
    assert plateau.cooling_from == 3 * WINDOW  # not before three windows are full
    cooling = max(WINDOW, round(COOLDOWN_SHARE / (1 - COOLDOWN_SHARE) * plateau.cooling_from))
    assert len(factors) == plateau.cooling_from + cooling
    assert factors[: plateau.cooling_from] == [1.0] * plateau.cooling_from


def test_the_factor_falls_steadily_to_its_end():
    plateau = Plateau(Schedule(max_epochs=100), n_cells=100)
    factors = feed(plateau, range(0, 10**6, 1000))
    cooling = np.array(factors[80:])
    assert factors[:80] == [1.0] * 80
    np.testing.assert_allclose(cooling[1:] / cooling[:-1], FINAL_RATE_FACTOR ** (1 / 20), rtol=1e-9)
    assert plateau.factor() == pytest.approx(FINAL_RATE_FACTOR)


def test_a_slow_climb_is_a_plateau_only_below_the_tolerance():
    """Gains are per observed cell over WINDOW epochs."""
    schedule, n_cells = Schedule(max_epochs=200, tol=1e-3), 1000
    for gain, expected in ((0.5, "plateau"), (2.0, "max_epochs")):  # tol · cells = 1 nat per window
        plateau = Plateau(schedule, n_cells)
        n = len(feed(plateau, np.arange(1000) * gain / WINDOW))
        assert (n == 200) == (expected == "max_epochs"), (gain, n)


def test_chance_does_not_end_a_climb():
    """A gain of three times the tolerance, drawn with a noise of ten times it: one window of ten cannot tell."""
    noise = 10 * np.random.default_rng(0).normal(size=(50, 120))
    climb = 3 * np.arange(120) / WINDOW + noise  # tol · cells = 1 nat per window
    ended = [Plateau(Schedule(max_epochs=1000, tol=1e-3), n_cells=1000) for _ in climb]
    for plateau, totals in zip(ended, climb, strict=True):
        feed(plateau, totals)
    assert sum(plateau.cooling_from is not None for plateau in ended) <= 5


def test_a_falling_bound_is_a_plateau():
    assert len(feed(Plateau(Schedule(max_epochs=1000), 10), -np.arange(1000.0))) < 100


def test_adam_warms_up_while_natural_steps_are_cautious():
    schedule = Schedule(learning_rate=0.02, natural_rate=0.4)
    warming = [rates_of(schedule, n, 1.0, np.dtype("float32")) for n in range(2 * WARMUP_EPOCHS)]
    learning, natural, caution = (np.array([float(r[i]) for r in warming]) for i in range(3))
    warm, haste = (
        np.minimum(np.arange(2 * WARMUP_EPOCHS) / WARMUP_EPOCHS, 1),
        (1 + 0.5 ** (np.arange(2 * WARMUP_EPOCHS) / DECAY_HALF_LIFE)) / 2,
    )
    np.testing.assert_allclose(learning, 0.02 * warm * haste, rtol=1e-6)
    np.testing.assert_allclose(natural, 0.4, rtol=1e-6)
    np.testing.assert_allclose(caution, 1 - warm, atol=1e-6)
    assert float(rates_of(schedule, 20 * DECAY_HALF_LIFE, 1.0, np.dtype("float32")).learning) == pytest.approx(
        0.01, rel=1e-5
    )


def test_a_long_table_is_passed_over_less_often():
    assert enough_epochs(1_400, 500) == DEFAULT_PASSES.most
    assert enough_epochs(32_561, 500) == DEFAULT_PASSES.steps // 66
    assert enough_epochs(10**6, 500) == DEFAULT_PASSES.least
