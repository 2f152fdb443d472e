"""Families that only the experiments need: Gaussians with one noise floor, alone or sharing their noise, the mass that
such a Gaussian puts on a level, and quadrature that forgets the √2."""

from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax.scipy.special import log_ndtr
from jaxtyping import Float

from plurigp.core.arrays import Array, Scalar
from plurigp.data import KINDS, Column, Schema
from plurigp.data.numeric import Units
from plurigp.likelihoods.base import Likelihood, Start, Theta
from plurigp.likelihoods.evaluate import over_cells
from plurigp.likelihoods.families.gaussian import gaussian, log_normal
from plurigp.likelihoods.registry import LIKELIHOODS, register
from plurigp.likelihoods.rules import Rule, gauss_hermite

PIXEL = 0.25  # the unit of all pixels: about the sd of one that varies


@dataclass(frozen=True)
class NoiseModel:
    """A Gaussian family y ~ N(f, floor² + sd²), the floor in coded units.

    `shared` is one sd for all columns, as in the released code: then sd is the geometric mean of the columns' own.
    `unit` fixes the unit of every column, so that one floor and one noise mean the same for all of them; None leaves
    each standardised.
    """

    floor: float
    shared: bool = False
    unit: float | None = None

    @property
    def kind(self) -> str:
        unit = "" if self.unit is None else f"_unit_{self.unit:g}"
        return f"gaussian_floor_{self.floor:g}{unit}{'_shared' if self.shared else ''}"

    def var(self, theta: Theta) -> Scalar:
        return self.floor**2 + jnp.exp(2 * theta["log_sd"])

    def log_prob(self, theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Scalar:
        return log_normal(y[0], f[0], self.var(theta))

    def expected(
        self, theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
    ) -> Scalar:
        return log_normal(y[0], mean[0], self.var(theta)) - 0.5 * var[0] / self.var(theta)

    def predictive(
        self, theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
    ) -> Scalar:
        return log_normal(y[0], mean[0], self.var(theta) + var[0])

    def expected_block(self, theta: Theta, y: Array, mean: Array, var: Array, rule: Rule) -> Float[Array, "C B"]:
        return over_cells(lambda t, y, a, v: self.expected(t, y, a, v, rule))(tied(theta), y, mean, var)

    def predictive_block(self, theta: Theta, y: Array, mean: Array, var: Array, rule: Rule) -> Float[Array, "C B"]:
        return over_cells(lambda t, y, a, v: self.predictive(t, y, a, v, rule))(tied(theta), y, mean, var)

    def sample(self, rng: np.random.Generator, theta: Theta, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        log_sd = np.asarray((tied(theta) if self.shared else theta)["log_sd"])
        return rng.normal(f[..., 0], np.sqrt(self.floor**2 + np.exp(2 * log_sd)))

    def start(self, y: np.ndarray, column: Column) -> Start:
        sd = max(float(np.std(y[:, 0])), self.floor)
        return Start(np.array([y[:, 0].mean()]), {"log_sd": float(np.log(sd))})

    def units(self, column: Column, numbers: np.ndarray) -> Units:
        return Units(0.0, float(self.unit or 1.0))


def tied(theta: Theta) -> Theta:
    """The same sd for every column of the block: the geometric mean, so all move together."""
    log_sd = theta["log_sd"]
    return {**theta, "log_sd": 0 * log_sd + log_sd.mean()}


def declare(noise: NoiseModel) -> str:
    """Make the family known, and give the kind under which a schema names it."""
    if noise.kind not in LIKELIHOODS:
        like = replace(
            gaussian,
            kind=noise.kind,
            log_prob=noise.log_prob,
            sample=noise.sample,
            start=noise.start,
            expected_log_prob=noise.expected,
            predictive_log_prob=noise.predictive,
            block_expected_log_prob=noise.expected_block if noise.shared else None,
            block_predictive_log_prob=noise.predictive_block if noise.shared else None,
        )
        register(like, reads_like="gaussian", about="numbers with a noise floor, for the experiments")
        if noise.unit is not None:
            KINDS[noise.kind] = replace(KINDS[noise.kind], units=noise.units)
    return noise.kind


# --- a Gaussian scored by probability ---


@dataclass(frozen=True)
class Mass:
    """What a Gaussian says of a level: the mass on its side of `cut`, half-way between the two coded levels."""

    noise: NoiseModel

    def log_prob(self, theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Scalar:
        return self._log_mass(theta, y[0], f[0], self.noise.var(theta))

    def predictive(
        self, theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
    ) -> Scalar:
        return self._log_mass(theta, y[0], mean[0], self.noise.var(theta) + var[0])

    def _log_mass(self, theta: Theta, y: Scalar, mean: Scalar, var: Scalar) -> Scalar:
        side = jnp.where(y > theta["cut"], 1, -1)
        return log_ndtr(side * (mean - theta["cut"]) / jnp.sqrt(var))

    def likelihood(self) -> Likelihood:
        """By quadrature where the expectation over f is asked for."""
        return replace(
            gaussian,
            kind=f"{self.noise.kind}_mass",
            log_prob=self.log_prob,
            expected_log_prob=None,
            predictive_log_prob=self.predictive,
        )


# --- the released code's quadrature ---


def halved(n: int) -> Rule:
    """Physicists' points without their √2: half of the variance is integrated over."""
    rule = gauss_hermite(n)
    return rule._replace(points=tuple(point / 2**0.5 for point in rule.points))


def declare_halved(kind: str) -> str:
    """The family `kind` with that quadrature, known under a name of its own."""
    name = f"{kind}_without_root_2"
    if name not in LIKELIHOODS:
        register(replace(LIKELIHOODS[kind], kind=name, rule=halved), reads_like=kind)
    return name


# --- schemas ---


def numeric_frame(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The used columns as numbers, levels by their places."""
    numbers = {}
    for column in schema.used:
        series = frame[column.name]
        if column.levels:
            series = series.map({level: float(place) for place, level in enumerate(column.levels)})
        numbers[column.name] = pd.to_numeric(series).astype("Float64").astype(float)
    return pd.DataFrame(numbers, index=frame.index)


def gaussian_for_all(frame: pd.DataFrame, schema: Schema, kind: str = "gaussian") -> tuple[pd.DataFrame, Schema]:
    """The table as numbers, every used column declared Gaussian: the standard model's view of it."""
    columns = [Column(column.name, kind, "Gaussian for all") for column in schema.used]
    return numeric_frame(frame, schema), Schema(tuple(columns))


def with_kinds(schema: Schema, kinds: dict[str, str]) -> Schema:
    """The schema with some kinds replaced by others that read the same cells."""
    return Schema(tuple(replace(column, kind=kinds.get(column.kind, column.kind)) for column in schema))
