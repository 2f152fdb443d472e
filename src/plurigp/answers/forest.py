"""Forests of extremely randomised trees as plain arrays: grown by scikit-learn, kept, saved and evaluated by NumPy."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from sklearn.ensemble import ExtraTreesRegressor

LEAF = -1  # a node without children


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


def grow_forest(  # long: from scikit-learn's objects to arrays
    X: Float[np.ndarray, "N E"],
    target: Float[np.ndarray, "N _"],
    statistics: Float[np.ndarray, "N R"],
    n_trees: int,
    min_leaf: int,
    seed: int,
) -> Forest:
    """Extra-trees that split by the target; their leaves hold the means of the statistics.

    Features are float32, so thresholds rounded down to float32 split as scikit-learn's do.
    """
    X = np.asarray(X, np.float32)
    grown = ExtraTreesRegressor(n_trees, min_samples_leaf=min_leaf, max_features=0.5, n_jobs=-1, random_state=seed)
    leaves = grown.fit(X, target[:, 0] if target.shape[1] == 1 else target).apply(X)  # [N T]
    parts, n_before = [], 0
    for tree, leaf in zip((one.tree_ for one in grown.estimators_), leaves.T, strict=True):
        inner, n = tree.children_left != LEAF, tree.node_count
        count = np.maximum(np.bincount(leaf, minlength=n), 1)
        means = [np.bincount(leaf, one, n) / count for one in statistics.T]
        parts.append(
            Forest(
                np.array([n_before], np.int32),
                np.where(inner, tree.feature, LEAF).astype(np.int16),
                _rounded_down(tree.threshold),
                np.where(inner, tree.children_left + n_before, LEAF).astype(np.int32),
                np.where(inner, tree.children_right + n_before, LEAF).astype(np.int32),
                np.stack(means, 1).astype(np.float32),
            )
        )
        n_before += n
    return Forest(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


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
