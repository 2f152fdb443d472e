"""Functions drawn from a Gaussian process, by random Fourier features, that can be evaluated at any x."""

from dataclasses import dataclass

import numpy as np

from plurigp.core.threads import single_blas_thread

N_FREQUENCIES = 1000
ROWS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class Functions:
    """P draws f_p(x) = b_p + s_p Σ_r (w_rp cos ω_rᵀx + v_rp sin ω_rᵀx) / √R from GP(b_p, s_p² k), k the ARD-RBF.

    The variance is exactly s_p² everywhere; the correlation is that of k within about 1/√R, R = 1,000 by default.
    """

    omega: np.ndarray  # [Q R] frequencies, N(0, 1/ℓ²)
    weights: np.ndarray  # [2R P] standard normal: cosines, then sines
    bias: np.ndarray  # [P]
    scale: np.ndarray  # [P]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The functions' values at positions x [... Q], as [... P]."""
        x = np.asarray(x, dtype=float)
        flat = x.reshape(-1, x.shape[-1])
        with single_blas_thread():  # two threads add up in another order: a seed would not always give the same table
            parts = [self._rows(flat[i : i + ROWS_AT_ONCE]) for i in range(0, len(flat), ROWS_AT_ONCE)]
        return np.concatenate(parts or [np.empty((0, len(self.bias)))]).reshape(*x.shape[:-1], len(self.bias))

    def _rows(self, x: np.ndarray) -> np.ndarray:
        angle = x @ self.omega  # [N R]
        features = np.concatenate([np.cos(angle), np.sin(angle)], axis=1) / np.sqrt(angle.shape[1])
        return self.bias + self.scale * (features @ self.weights)


def draw_functions(
    rng: np.random.Generator,
    bias: np.ndarray,
    scale: np.ndarray,
    lengthscale: np.ndarray,
    n_frequencies: int = N_FREQUENCIES,
) -> Functions:
    """One draw of P independent functions on the Q dimensions of `lengthscale` [Q]; the frequencies are shared."""
    omega = rng.standard_normal((len(lengthscale), n_frequencies)) / np.asarray(lengthscale, dtype=float)[:, None]
    weights = rng.standard_normal((2 * n_frequencies, len(bias)))
    return Functions(omega, weights, np.asarray(bias, dtype=float), np.asarray(scale, dtype=float))
