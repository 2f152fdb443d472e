"""Forests of extremely randomised trees as plain arrays: grown by scikit-learn, kept, saved and evaluated by NumPy."""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

LEAF = -1  # a node without children
N_PARTS = 5  # of the rows; every tree leaves one out
MAX_FEATURES = 0.5  # share of the inputs tried at a split


class Forest(NamedTuple):
    """Trees one after another, node by node; a row goes left where its feature is at most the threshold."""

    roots: Int[np.ndarray, " T"]  # the first node of every tree
    feature: Int[np.ndarray, " n"]  # LEAF at leaves
    threshold: Float[np.ndarray, " n"]
    left: Int[np.ndarray, " n"]
    right: Int[np.ndarray, " n"]
    value: Float[np.ndarray, "n R"]  # of leaves: means over their training rows

    def by_tree(self, X: Float[np.ndarray, "N E"]) -> Float[np.ndarray, "T N R"]:
        """The value of the leaf that every row reaches in every tree."""
        X = np.asarray(X, np.float32)
        node = np.repeat(self.roots[:, None], len(X), axis=1)  # [T N]
        row = np.broadcast_to(np.arange(len(X)), node.shape)
        inside = self.feature[node] != LEAF
        while inside.any():
            at, n = node[inside], row[inside]
            goes_left = X[n, self.feature[at]] <= self.threshold[at]
            node[inside] = np.where(goes_left, self.left[at], self.right[at])
            inside = self.feature[node] != LEAF
        return self.value[node]

    def mean(self, X: Float[np.ndarray, "N E"], chunk: int = 4096) -> Float[np.ndarray, "N R"]:
        """The mean over trees, some rows at a time."""
        parts = [self.by_tree(X[i : i + chunk]).mean(0) for i in range(0, len(X), chunk)]
        return np.concatenate(parts) if parts else np.empty((0, self.value.shape[1]))


def grow_tree(
    X: Float[np.ndarray, "N E"],
    target: Float[np.ndarray, "N _"],
    statistics: Float[np.ndarray, "N R"],
    X_unseen: Float[np.ndarray, "n E"],
    min_leaf: int,
    seed: int,
) -> tuple[Forest, Float[np.ndarray, "n R"]]:
    """One extra-tree that splits by the target, its leaves hold the means of the statistics; and what it says of
    further rows, by scikit-learn because that is faster than `by_tree`.

    Features are float32, so thresholds rounded down to float32 split as scikit-learn's do.
    """
    from sklearn.tree import ExtraTreeRegressor  # slow to import, and few fits grow trees

    grown = ExtraTreeRegressor(min_samples_leaf=min_leaf, max_features=MAX_FEATURES, random_state=seed)
    tree = grown.fit(X, target[:, 0] if target.shape[1] == 1 else target, check_input=False).tree_
    leaf, n = tree.apply(X), tree.node_count
    count = np.maximum(np.bincount(leaf, minlength=n), 1)
    means = np.stack([np.bincount(leaf, one, n) / count for one in statistics.T], 1).astype(np.float32)
    inner = tree.children_left != LEAF
    forest = Forest(
        np.zeros(1, np.int32),
        np.where(inner, tree.feature, LEAF).astype(np.int16),
        _rounded_down(tree.threshold),
        np.where(inner, tree.children_left, LEAF).astype(np.int32),
        np.where(inner, tree.children_right, LEAF).astype(np.int32),
        means,
    )
    return forest, means[tree.apply(X_unseen)]


class OutOfBag(NamedTuple):
    """Trees, what those say of a row that were grown without it, and the variance that this has beyond that of all."""

    forest: Forest
    unseen: Float[np.ndarray, "N R"]
    excess_var: float


def left_out_parts(n_rows: int, n_trees: int, seed: int) -> Int[np.ndarray, "G N"]:
    """For every N_PARTS trees, the number of the one that each row is left out of."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.permutation(n_rows) % N_PARTS for _ in range(max(n_trees // N_PARTS, 1))])


def grow_out_of_bag(
    X: Float[np.ndarray, "N E"],
    X_unseen: Float[np.ndarray, "N E"],
    target: Float[np.ndarray, "N _"],
    statistics: Float[np.ndarray, "N R"],
    n_trees: int,
    min_leaf: int,
    seed: int,
) -> OutOfBag:
    """Each tree leaves out a fifth of the rows, which it predicts from `X_unseen`.

    A row's trees were grown on as many different parts of the table as those that answer later, so it is predicted as
    a new row will be, up to the variance of fewer trees.
    """
    X, X_unseen = np.ascontiguousarray(X, np.float32), np.ascontiguousarray(X_unseen, np.float32)
    parts = left_out_parts(len(X), n_trees, seed)

    def one_group(g: int) -> tuple[list[Forest], Float[np.ndarray, "N R"]]:
        trees, unseen = [], np.empty_like(statistics, dtype=float)
        for k in range(N_PARTS):
            kept, out = np.flatnonzero(parts[g] != k), np.flatnonzero(parts[g] == k)
            own_seed = (seed + g * N_PARTS + k) % 2**32
            tree, unseen[out] = grow_tree(X[kept], target[kept], statistics[kept], X_unseen[out], min_leaf, own_seed)
            trees.append(tree)
        return trees, unseen

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        groups = list(pool.map(one_group, range(len(parts))))
    forest = join_forests([tree for trees, _ in groups for tree in trees])
    unseen = np.stack([own for _, own in groups])
    n = len(parts)
    var = float(unseen[:, :, 0].var(0, ddof=1).mean()) if n > 1 else 0.0
    return OutOfBag(forest, unseen.mean(0), var / n * (1 - 1 / N_PARTS))


def join_forests(forests: list[Forest]) -> Forest:
    """All their trees in one."""
    n_before = np.cumsum([0, *(len(forest.feature) for forest in forests[:-1])])
    moved = [
        forest._replace(
            roots=(forest.roots + n).astype(np.int32),
            left=np.where(forest.left == LEAF, LEAF, forest.left + n).astype(np.int32),
            right=np.where(forest.right == LEAF, LEAF, forest.right + n).astype(np.int32),
        )
        for forest, n in zip(forests, n_before, strict=True)
    ]
    return Forest(*(np.concatenate(parts) for parts in zip(*moved, strict=True)))


def _rounded_down(numbers: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """The largest float32 not above each number."""
    near = numbers.astype(np.float32)
    return np.where(near > numbers, np.nextafter(near, np.float32(-np.inf)), near)
