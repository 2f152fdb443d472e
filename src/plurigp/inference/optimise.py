"""Adam on a small objective, for a fixed number of steps inside one compiled program."""

from collections.abc import Callable
from typing import Any

import jax
import optax

from plurigp.core.arrays import Scalar


def minimise(objective: Callable[[Any], Scalar], start: Any, n_steps: int, rate: float, final_factor: float) -> Any:
    """Where n_steps of Adam from `start` end, the rate falling to final_factor of itself along a cosine."""
    adam = optax.adam(optax.cosine_decay_schedule(rate, n_steps, final_factor))

    def step(carry: Any, _: None) -> tuple[Any, None]:
        tree, state = carry
        update, state = adam.update(jax.grad(objective)(tree), state)
        return (optax.apply_updates(tree, update), state), None

    (tree, _), _ = jax.lax.scan(step, (start, adam.init(start)), None, length=n_steps)
    return tree
