# SPDX-License-Identifier: MIT
"""Learning on the nodes of a graph without writing a model: estimators with scikit-learn's conventions.

Settings, their defaults, losses and the selection on validation are those of ``mpssm train``. An
estimator builds a :class:`mpssm.nn.MPSSM`, trains it in a plain loop and keeps it as ``model_``.
"""

from __future__ import annotations

import math
from typing import Any, Optional, Tuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from mpssm._estimator import Array, Estimator, r2_score
from mpssm._inputs import FeatureColumns, gso_of, is_frame, known_labels, mask_of
from mpssm.forecaster import Forecaster
from mpssm.gso import Gso
from mpssm.nn import MPSSM

__all__ = ["Forecaster", "NodeClassifier", "NodeRegressor"]


class _NodeEstimator(Estimator):
    """One graph, a prediction for each node."""

    def __init__(self, *, channels: int = 64, blocks: int = 4, hops: int = 4, state: str = "stable",
                 dropout: float = 0.2, kind: str = "sym_normalized", directed: bool = False,
                 standardise: bool = True, epochs: int = 300, lr: float = 1e-3,
                 weight_decay: float = 0.0, patience: int = 0, validation_fraction: float = 1 / 3,
                 random_state: Any = 0, verbose: Optional[bool] = None):
        self.channels, self.blocks, self.hops, self.state = channels, blocks, hops, state
        self.dropout, self.kind, self.directed = dropout, kind, directed
        self.standardise, self.epochs, self.lr = standardise, epochs, lr
        self.weight_decay, self.patience = weight_decay, patience
        self.validation_fraction = validation_fraction
        self.random_state, self.verbose = random_state, verbose

    def _inputs(self, x: Any, edges: Any) -> Tuple[Tensor, Gso]:
        if edges is None and self.has_edges_:
            raise ValueError("edges: expected the graph of these nodes, as in fit, got none")
        features = self.columns_.transform(x, type(self).__name__)
        names = x.index if is_frame(x) else None
        return features, gso_of(edges, features.shape[0], names, self.kind, self.directed)

    def _raw(self, x: Any, edges: Any) -> Tensor:
        """Of the network: [N, out]."""
        model = self._fitted()
        with torch.no_grad():
            return model(*self._inputs(x, edges))

    def _parts(self, known: NDArray[np.bool_], strata: Array, validation: Optional[Any],
               seed: int) -> Tuple[Tensor, Tensor]:
        """Rows to train on and rows to select by; of each stratum, one at least to train on."""
        rows = np.flatnonzero(known)
        if validation is not None:
            chosen = mask_of("validation", validation, len(known)) & known
        else:
            chosen = np.zeros(len(known), dtype=bool)
            draw = np.random.default_rng(seed)
            for stratum in np.unique(strata[rows]):
                members = draw.permutation(rows[strata[rows] == stratum])
                count = min(round(self.validation_fraction * len(members)), len(members) - 1)
                chosen[members[:count]] = True
            if not chosen.any() and len(rows) > len(np.unique(strata[rows])):
                values, counts = np.unique(strata[rows], return_counts=True)
                chosen[draw.choice(rows[strata[rows] == values[counts.argmax()]])] = True
        train = known & ~chosen
        if not chosen.any() or not train.any():
            raise ValueError("y: expected labelled nodes to train on and others to select by, got "
                             f"{int(train.sum())} and {int(chosen.sum())} (n_samples = {len(rows)}); give "
                             "more labels")
        missing = np.setdiff1d(strata[rows], strata[train])
        if len(missing):
            raise ValueError(f"validation: expected every class among the other labelled nodes, too, "
                             f"got none of class {missing[0]!r}")
        return torch.from_numpy(np.flatnonzero(train)), torch.from_numpy(np.flatnonzero(chosen))

    def _learn_columns(self, x: Any, y: Any, edges: Any) -> None:
        self._checked()
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        self.has_edges_ = edges is not None
        self.columns_ = FeatureColumns.fit(x, self.standardise)
        self.n_features_in_ = len(self.columns_.columns)
        if self.columns_.named:
            self.feature_names_in_ = np.array([column.name for column in self.columns_.columns],
                                              dtype=object)


class NodeClassifier(_NodeEstimator):
    """Classes of the nodes of one graph, some of which are known.

    Args:
        channels, blocks, hops, state, dropout: of the :class:`mpssm.nn.MPSSM`.
        kind, directed: of the operator made from ``edges``; a Gso is taken as it is.
        standardise: numbers of X get mean 0 and deviation 1 over all nodes given to ``fit``.
        epochs, lr, weight_decay, patience: of AdamW on the cross entropy; ``patience`` epochs without
            gain on validation end it (0: never).
        validation_fraction: share of the labelled nodes that select the best epoch, of each class; by
            ROC AUC for two classes, else by accuracy.
        class_weights: every class counts the same in the loss.
        random_state: start of all random numbers. torch's own generator stays as it is.
        verbose: a line of progress; None: where there is a terminal or a notebook.

    Attributes:
        classes_: [K], sorted. model_: the module. columns_: what was learned about X.
        history_: a dict for each epoch. best_epoch_: the one whose weights were kept.
    """

    _estimator_type = "classifier"

    def __init__(self, *, channels: int = 64, blocks: int = 4, hops: int = 4, state: str = "stable",
                 dropout: float = 0.2, kind: str = "sym_normalized", directed: bool = False,
                 standardise: bool = True, epochs: int = 300, lr: float = 1e-3,
                 weight_decay: float = 0.0, patience: int = 0, validation_fraction: float = 1 / 3,
                 class_weights: bool = False, random_state: Any = 0,
                 verbose: Optional[bool] = None):
        super().__init__(channels=channels, blocks=blocks, hops=hops, state=state, dropout=dropout,
                         kind=kind, directed=directed, standardise=standardise, epochs=epochs, lr=lr,
                         weight_decay=weight_decay, patience=patience,
                         validation_fraction=validation_fraction, random_state=random_state,
                         verbose=verbose)
        self.class_weights = class_weights

    def fit(self, X: Any, y: Any, edges: Any = None, *, mask: Optional[Any] = None,
            validation: Optional[Any] = None) -> NodeClassifier:
        """Learns from the nodes whose class is known.

        Args:
            X: features [N, F] or a DataFrame, whose text columns become categories. A missing number
                becomes the median of its column, and a column of its own says where.
            y: [N], a class for each node; None, NaN or -1 where it is not known.
            edges: edge_index [2, E], a DataFrame (src, dst, weight), SciPy, NetworkX or a Gso. Ends in
                a DataFrame and in NetworkX are names in the index of X if that is a DataFrame.
                None: every node by itself, to see what the graph is worth.
            mask: bool [N], which labels are known; then -1 is a class like others.
            validation: bool [N], which of them select; default is a random share of each class.
        """
        self._learn_columns(X, y, edges)
        features, gso = self._inputs(X, edges)
        labels, known = known_labels(y, len(features), mask, minus_one_is_none=True)
        if labels.dtype.kind == "f" and (labels[known] != np.rint(labels[known])).any():
            raise ValueError("y: expected classes, got numbers with fractions (Unknown label type: "
                             "continuous); NodeRegressor learns numbers")
        self.classes_, numbers = np.unique(labels[known], return_inverse=True)
        if len(self.classes_) < 2:
            only = f"1 class, {self.classes_[0]}" if len(self.classes_) else "none"
            raise ValueError(f"y: expected at least two classes, got {only}"
                             + ("" if mask is not None else
                                " (None, NaN and -1 say that a class is not known)"))
        class_of = np.full(len(features), -1)
        class_of[known] = numbers
        seed = self._seed()
        train, val = self._parts(known, class_of, validation, seed)
        target = torch.from_numpy(class_of)
        binary = len(self.classes_) == 2
        weight = torch.ones(len(self.classes_))
        if self.class_weights:
            weight = 1.0 / torch.bincount(target[train], minlength=len(weight)).clamp(min=1)

        def loss_of(output: Tensor, rows: Tensor, of_class: Tensor) -> Tensor:
            each = _class_loss(output[rows], target[rows], binary)
            share = of_class[target[rows]]
            return (each * share).sum() / share.sum()

        def score(model: MPSSM) -> Tuple[float, float]:
            output = model(features, gso)
            val_loss = float(loss_of(output, val, torch.ones(len(weight))))
            if not binary:
                return val_loss, float((output[val].argmax(1) == target[val]).double().mean())
            auc = _roc_auc(output[val, 0], target[val] == 1)
            return val_loss, -val_loss if math.isnan(auc) else auc

        self._train(seed, lambda: self._make_model(features.shape[1], 1 if binary else len(weight)),
                    lambda epoch: [None],
                    lambda model, _: loss_of(model(features, gso), train, weight), score)
        return self

    def predict_proba(self, X: Any, edges: Any = None) -> Array:
        """Probabilities [N, K] in the order of ``classes_``."""
        output = self._raw(X, edges).double()
        if len(self.classes_) > 2:
            return torch.softmax(output, -1).numpy()
        one = torch.sigmoid(output)
        return torch.cat([1.0 - one, one], -1).numpy()

    def predict(self, X: Any, edges: Any = None) -> Array:
        """The likeliest class of each node, [N]."""
        probability = self.predict_proba(X, edges)
        return self.classes_[probability.argmax(-1)]

    def score(self, X: Any, y: Any, edges: Any = None, *, mask: Optional[Any] = None) -> float:
        """Share of the nodes with a label (of ``mask``) whose class is predicted."""
        predicted = self.predict(X, edges)
        labels, known = known_labels(y, len(predicted), mask, minus_one_is_none=True)
        if not known.any():
            raise ValueError("y: expected a label to compare with, got none")
        return float((predicted[known] == labels[known]).mean())


def _class_loss(output: Tensor, target: Tensor, binary: bool) -> Tensor:
    if binary:
        return functional.binary_cross_entropy_with_logits(output[:, 0], target.to(output.dtype),
                                                           reduction="none")
    return functional.cross_entropy(output, target, reduction="none")


def _roc_auc(score: Tensor, positive: Tensor) -> float:
    """Share of pairs in the right order, equal ones count half; NaN without both classes."""
    values, inverse, count = torch.unique(score.double(), return_inverse=True, return_counts=True)
    rank = (count.cumsum(0) - (count - 1) / 2.0)[inverse]  # mean rank of equals, from 1
    ones, zeros = int(positive.sum()), int((~positive).sum())
    if not ones or not zeros:
        return math.nan
    return float((rank[positive].sum() - ones * (ones + 1) / 2) / (ones * zeros))


class NodeRegressor(_NodeEstimator):
    """Numbers for the nodes of one graph, some of which are known.

    Settings as :class:`NodeClassifier`; the loss is the squared error of labels with mean 0 and
    deviation 1 over the training nodes, the best epoch is the one of least mean absolute error.

    Attributes: model_, columns_, history_, best_epoch_; mean_, scale_ of the labels.
    """

    def fit(self, X: Any, y: Any, edges: Any = None, *, mask: Optional[Any] = None,
            validation: Optional[Any] = None) -> NodeRegressor:
        """Learns from the nodes whose number is known; arguments as :meth:`NodeClassifier.fit`, y [N]
        with None or NaN where it is not known."""
        self._learn_columns(X, y, edges)
        features, gso = self._inputs(X, edges)
        labels, known = known_labels(y, len(features), mask, minus_one_is_none=False)
        numbers = _label_numbers(labels, known)
        seed = self._seed()
        train, val = self._parts(known, np.zeros(len(features)), validation, seed)
        truth = torch.from_numpy(numbers)
        self.mean_ = float(truth[train].mean())
        self.scale_ = float(truth[train].std(correction=0)) or 1.0
        target = ((truth - self.mean_) / self.scale_).float()

        def loss_of(output: Tensor, rows: Tensor) -> Tensor:
            return (output[rows, 0] - target[rows]).square().mean()

        def score(model: MPSSM) -> Tuple[float, float]:
            output = model(features, gso)
            error = (output[val, 0] - target[val]).abs().mean()
            return float(loss_of(output, val)), -self.scale_ * float(error)

        self._train(seed, lambda: self._make_model(features.shape[1], 1), lambda epoch: [None],
                    lambda model, _: loss_of(model(features, gso), train), score)
        return self

    def predict(self, X: Any, edges: Any = None) -> Array:
        """A number for each node, [N]."""
        output = self._raw(X, edges)
        return output[:, 0].double().numpy() * self.scale_ + self.mean_

    def score(self, X: Any, y: Any, edges: Any = None, *, mask: Optional[Any] = None) -> float:
        """R^2 over the nodes with a label (of ``mask``)."""
        predicted = self.predict(X, edges)
        labels, known = known_labels(y, len(predicted), mask, minus_one_is_none=False)
        if not known.any():
            raise ValueError("y: expected a label to compare with, got none")
        return r2_score(_label_numbers(labels, known)[known], predicted[known])


def _label_numbers(labels: Array, known: NDArray[np.bool_]) -> NDArray[np.float64]:
    numbers = np.zeros(len(labels))
    try:
        numbers[known] = labels[known].astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError("y: expected numbers, got text; NodeClassifier learns classes") from None
    if not np.isfinite(numbers).all():
        raise ValueError(f"y: expected finite numbers, got {numbers[~np.isfinite(numbers)][0]}")
    return numbers
