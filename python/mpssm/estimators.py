# SPDX-License-Identifier: MIT
"""Learning without writing a model: estimators with scikit-learn's conventions.

Settings, their defaults, losses and the selection on validation are those of ``mpssm train``. An
estimator builds a :class:`mpssm.nn.MPSSM`, trains it in a plain loop and keeps it as ``model_``.
"""

from __future__ import annotations

import copy
import inspect
import math
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from mpssm._inputs import FeatureColumns, as_array, gso_of, is_frame, known_labels, mask_of
from mpssm._progress import Progress
from mpssm.gso import Gso
from mpssm.nn import MPSSM

__all__ = ["Forecaster", "NodeClassifier", "NodeRegressor"]

Array = NDArray[Any]


# ---- what all have --------------------------------------------------------------------------


class _Estimator:
    """Parameters as scikit-learn's ``clone`` and searches want them, and the loop."""

    _estimator_type = "regressor"

    @classmethod
    def _parameter_names(cls) -> List[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> Dict[str, Any]:
        """Every setting by its name."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **params: Any) -> Any:
        """Changes settings by name; returns self."""
        known = self._parameter_names()
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"{type(self).__name__}: expected one of {', '.join(known)}, got "
                                 f"{name!r}")
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator  # who asks has it
        from sklearn.utils import ClassifierTags, RegressorTags

        tags = BaseEstimator.__sklearn_tags__(self)
        tags.estimator_type = self._estimator_type
        if tags.estimator_type == "classifier":
            tags.classifier_tags = ClassifierTags()
        else:
            tags.regressor_tags = RegressorTags()
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = [f"{name}={value!r}" for name, value in self.get_params().items()
                   if value is not defaults[name].default and value != defaults[name].default]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _checked(self) -> None:
        p = self.get_params()
        for name, least in (("channels", 1), ("blocks", 1), ("hops", 0), ("epochs", 1),
                            ("patience", 0), ("lags", 1), ("horizon", 1), ("batch", 1)):
            if p.get(name) is not None and p[name] < least:
                raise ValueError(f"{type(self).__name__}: expected {name} of {least} or more, got "
                                 f"{p[name]}")
        if not 0.0 < p["validation_fraction"] < 1.0:
            raise ValueError(f"{type(self).__name__}: expected validation_fraction between 0 and 1, got "
                             f"{p['validation_fraction']}")

    def _fitted(self) -> MPSSM:
        model: Optional[MPSSM] = getattr(self, "model_", None)
        if model is None:
            raise ValueError(f"{type(self).__name__}: expected fit() before this")
        return model

    def _make_model(self, in_channels: int, out_channels: int, **options: Any) -> MPSSM:
        p = self.get_params()
        return MPSSM(in_channels, p["channels"], out_channels, num_blocks=p["blocks"],
                     hops=p.get("hops", 4), state=p["state"], dropout=p["dropout"], kind=p["kind"],
                     **options)

    def _seed(self) -> int:
        """``random_state``: None, a number, or a numpy RandomState or Generator to draw one from."""
        state = self.get_params()["random_state"]
        if state is None:
            return int(np.random.SeedSequence().generate_state(1)[0])
        if isinstance(state, np.random.RandomState):
            return int(state.randint(2**31))
        if isinstance(state, np.random.Generator):
            return int(state.integers(2**31))
        return int(state)

    def _train(self, seed: int, make_model: Callable[[], MPSSM],
               batches: Callable[[int], Iterable[Any]], loss: Callable[[MPSSM, Any], Tensor],
               score: Callable[[MPSSM], Tuple[float, float]]) -> None:
        """Sets model_, history_ and best_epoch_. ``score``: loss and value on validation, where a
        larger value is better; the weights with the best one are kept, the first of equals."""
        p = self.get_params()
        progress = Progress(p["epochs"], p["verbose"])
        # Initial weights and dropout draw from torch's own generator, which is lent and given back.
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            model = make_model()
            optimiser = _adam_w(model, p["lr"], p["weight_decay"])
            self.history_: List[Dict[str, float]] = []
            best, best_value, since_gain = copy.deepcopy(model.state_dict()), -math.inf, 0
            self.best_epoch_ = 0
            for epoch in range(1, p["epochs"] + 1):
                model.train()
                losses = [_step(model, optimiser, loss, batch, p["lr"]) for batch in batches(epoch)]
                model.eval()
                with torch.no_grad():
                    val_loss, value = score(model)
                if math.isnan(val_loss):
                    raise _diverged("the loss on validation", p["lr"])
                self.history_.append({"epoch": epoch, "train_loss": sum(losses) / len(losses),
                                      "val_loss": val_loss, "val_score": value})
                since_gain += 1
                if value > best_value or self.best_epoch_ == 0:
                    best, best_value, since_gain = copy.deepcopy(model.state_dict()), value, 0
                    self.best_epoch_ = epoch
                progress.show(epoch, f"loss {losses[-1]:.4g}, validation {value:.4g}, best "
                                     f"{best_value:.4g}")
                if p["patience"] and since_gain >= p["patience"]:
                    break
            progress.close()
            model.load_state_dict(best)
        self.model_ = model.eval()


def _adam_w(model: MPSSM, lr: float, weight_decay: float) -> torch.optim.AdamW:
    """No decay on parameters with one axis: biases, norms, the numbers of a diagonal W."""
    parameters = list(model.parameters())
    return torch.optim.AdamW(
        [{"params": [p for p in parameters if p.dim() > 1], "weight_decay": weight_decay},
         {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0}], lr=lr)


def _diverged(what: str, lr: float) -> RuntimeError:
    return RuntimeError(f"training stopped: {what} is not a finite number any more (lr={lr}); try a "
                        "smaller lr or state='stable'")


def _step(model: MPSSM, optimiser: torch.optim.Optimizer, loss: Callable[[MPSSM, Any], Tensor],
          batch: Any, lr: float) -> float:
    optimiser.zero_grad()
    value = loss(model, batch)
    number = float(value.detach())
    if not math.isfinite(number):
        raise _diverged("the loss", lr)
    value.backward()  # type: ignore[no-untyped-call]
    optimiser.step()
    return number


def _r2(truth: Array, predicted: Array) -> float:
    deviation = ((truth - truth.mean()) ** 2).sum()
    error = ((truth - predicted) ** 2).sum()
    if deviation == 0.0:
        return 1.0 if error == 0.0 else 0.0
    return float(1.0 - error / deviation)


# ---- nodes ----------------------------------------------------------------------------------


class _NodeEstimator(_Estimator):
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
        features = self.columns_.transform(x)
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
                             f"{int(train.sum())} and {int(chosen.sum())}; give more labels")
        missing = np.setdiff1d(strata[rows], strata[train])
        if len(missing):
            raise ValueError(f"validation: expected every class among the other labelled nodes, too, "
                             f"got none of class {missing[0]!r}")
        return torch.from_numpy(np.flatnonzero(train)), torch.from_numpy(np.flatnonzero(chosen))

    def _learn_columns(self, x: Any) -> None:
        self._checked()
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

    def fit(self, X: Any, y: Any, edges: Any, *, mask: Optional[Any] = None,
            validation: Optional[Any] = None) -> NodeClassifier:
        """Learns from the nodes whose class is known.

        Args:
            X: features [N, F] or a DataFrame, whose text columns become categories.
            y: [N], a class for each node; None, NaN or -1 where it is not known.
            edges: edge_index [2, E], a DataFrame (src, dst, weight), SciPy, NetworkX or a Gso. Ends in
                a DataFrame and in NetworkX are names in the index of X if that is a DataFrame.
            mask: bool [N], which labels are known; then -1 is a class like others.
            validation: bool [N], which of them select; default is a random share of each class.
        """
        self._learn_columns(X)
        features, gso = self._inputs(X, edges)
        labels, known = known_labels(y, len(features), mask, minus_one_is_none=True)
        self.classes_, numbers = np.unique(labels[known], return_inverse=True)
        if len(self.classes_) < 2:
            only = f"{self.classes_[0]!r} only" if len(self.classes_) else "none"
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

    def predict_proba(self, X: Any, edges: Any) -> Array:
        """Probabilities [N, K] in the order of ``classes_``."""
        output = self._raw(X, edges).double()
        if len(self.classes_) > 2:
            return torch.softmax(output, -1).numpy()
        one = torch.sigmoid(output)
        return torch.cat([1.0 - one, one], -1).numpy()

    def predict(self, X: Any, edges: Any) -> Array:
        """The likeliest class of each node, [N]."""
        probability = self.predict_proba(X, edges)
        return self.classes_[probability.argmax(-1)]

    def score(self, X: Any, y: Any, edges: Any, *, mask: Optional[Any] = None) -> float:
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

    def fit(self, X: Any, y: Any, edges: Any, *, mask: Optional[Any] = None,
            validation: Optional[Any] = None) -> NodeRegressor:
        """Learns from the nodes whose number is known; arguments as :meth:`NodeClassifier.fit`, y [N]
        with None or NaN where it is not known."""
        self._learn_columns(X)
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

    def predict(self, X: Any, edges: Any) -> Array:
        """A number for each node, [N]."""
        output = self._raw(X, edges)
        return output[:, 0].double().numpy() * self.scale_ + self.mean_

    def score(self, X: Any, y: Any, edges: Any, *, mask: Optional[Any] = None) -> float:
        """R^2 over the nodes with a label (of ``mask``)."""
        predicted = self.predict(X, edges)
        labels, known = known_labels(y, len(predicted), mask, minus_one_is_none=False)
        if not known.any():
            raise ValueError("y: expected a label to compare with, got none")
        return _r2(_label_numbers(labels, known)[known], predicted[known])


def _label_numbers(labels: Array, known: NDArray[np.bool_]) -> NDArray[np.float64]:
    numbers = np.zeros(len(labels))
    try:
        numbers[known] = labels[known].astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError("y: expected numbers, got text; NodeClassifier learns classes") from None
    if not np.isfinite(numbers).all():
        raise ValueError(f"y: expected finite numbers, got {numbers[~np.isfinite(numbers)][0]}")
    return numbers


# ---- series ---------------------------------------------------------------------------------


class Forecaster(_Estimator):
    """The next steps of a series at the nodes of one graph, from the last ones.

    Args:
        lags: steps seen; None: 12 for series of 200 steps and more, else 4. horizon: steps predicted.
        channels, blocks, state, dropout: of the :class:`mpssm.nn.MPSSM`, which makes a hop a step.
        batch: windows in each step of AdamW, on the mean absolute error.
        validation_fraction: share of the windows, the last ones, that select the best epoch.
        standardise: the values get mean 0 and deviation 1 over the inputs of the training windows.
        Others as :class:`NodeClassifier`.

    Attributes: model_, history_, best_epoch_; lags_; mean_, scale_ of the values.
    """

    def __init__(self, *, lags: Optional[int] = None, horizon: int = 1, channels: int = 64,
                 blocks: int = 4, state: str = "stable", dropout: float = 0.2,
                 kind: str = "sym_normalized", directed: bool = False, standardise: bool = True,
                 epochs: int = 300, batch: int = 64, lr: float = 1e-3, weight_decay: float = 0.0,
                 patience: int = 0, validation_fraction: float = 1 / 8, random_state: Any = 0,
                 verbose: Optional[bool] = None):
        self.lags, self.horizon, self.channels, self.blocks = lags, horizon, channels, blocks
        self.state, self.dropout, self.kind, self.directed = state, dropout, kind, directed
        self.standardise, self.epochs, self.batch, self.lr = standardise, epochs, batch, lr
        self.weight_decay, self.patience = weight_decay, patience
        self.validation_fraction = validation_fraction
        self.random_state, self.verbose = random_state, verbose

    def _series(self, x: Any, edges: Any) -> Tuple[Tensor, Gso]:
        """double [T, N, F] and the operator."""
        names = x.columns if is_frame(x) else None
        try:
            values = as_array(x).astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError("X: expected numbers, got text or nothing") from None
        if values.ndim == 2:
            values = values[:, :, None]
        if values.ndim != 3 or 0 in values.shape:
            raise ValueError("X: expected a series of shape [T, N] or [T, N, F], got "
                             f"{list(values.shape)}")
        if not np.isfinite(values).all():
            step, node = np.argwhere(~np.isfinite(values))[0][:2]
            raise ValueError(f"X: step {step}, node {node}: expected a finite number; fill gaps first")
        return (torch.from_numpy(values),
                gso_of(edges, values.shape[1], names, self.kind, self.directed))

    def _scaled(self, values: Tensor) -> Tensor:
        first = (values[..., :1] - self.mean_) / self.scale_
        return torch.cat([first, values[..., 1:]], -1).float()

    def _windows(self, num_steps: int) -> int:
        count = num_steps - self.lags_ - self.horizon + 1
        if count < 1:
            raise ValueError(f"X: expected at least lags + horizon = {self.lags_ + self.horizon} steps, "
                             f"got {num_steps}")
        return count

    def fit(self, X: Any, edges: Any) -> Forecaster:
        """Learns from every window of a series.

        Args:
            X: [T, N], or [T, N, F] of which feature 0 is predicted, or a DataFrame with a row for each
                step and a column for each node.
            edges: as :meth:`NodeClassifier.fit`; names are those of the columns of X.
        """
        self._checked()
        values, gso = self._series(X, edges)
        self.lags_ = self.lags if self.lags is not None else 12 if len(values) >= 200 else 4
        count = self._windows(len(values))
        num_val = max(1, round(self.validation_fraction * count))
        num_train = count - num_val
        if num_train < 1:
            raise ValueError(f"X: expected windows to train on and to select by, got {count} in all; "
                             "take fewer lags, a shorter horizon or a longer series")
        self.mean_, self.scale_ = _scale_of_windows(values[..., 0], num_train, self.lags_) if (
            self.standardise) else (0.0, 1.0)
        inputs, truth = self._scaled(values), self._scaled(values)[..., 0]
        seed = self._seed()

        def error(model: MPSSM, windows: Tensor) -> Tensor:
            ahead = truth[windows[:, None] + self.lags_ + torch.arange(self.horizon)]  # [B, H, N]
            output = model(inputs[windows[:, None] + torch.arange(self.lags_)], gso)
            return (output - ahead.transpose(1, 2)).abs()

        def batches(epoch: int) -> Iterator[Tensor]:
            draw = np.random.default_rng([seed, epoch])
            return iter(torch.from_numpy(draw.permutation(num_train)).split(self.batch))

        def score(model: MPSSM) -> Tuple[float, float]:
            errors = [error(model, some).flatten()
                      for some in torch.arange(num_train, count).split(self.batch)]
            mae = float(torch.cat(errors).double().mean()) * self.scale_
            return mae, -mae

        # The loss on the scale of the values, as the program's.
        self._train(seed, lambda: self._make_model(inputs.shape[-1], self.horizon, temporal=True,
                                                   readout="forecast"), batches,
                    lambda model, some: error(model, some).mean() * self.scale_, score)
        return self

    def _forecast(self, values: Tensor, gso: Gso, windows: Tensor) -> Array:
        """[B, H, N] after the windows that begin at these steps."""
        model = self._fitted()
        if values.shape[-1] != model.in_channels:
            raise ValueError(f"X: expected {model.in_channels} features as in training, got "
                             f"{values.shape[-1]}")
        inputs, parts = self._scaled(values), []
        with torch.no_grad():
            for some in windows.split(self.batch):
                output = model(inputs[some[:, None] + torch.arange(self.lags_)], gso)
                parts.append(output.double() * self.scale_ + self.mean_)
        return torch.cat(parts).transpose(1, 2).numpy()

    def predict(self, X: Any, edges: Any) -> Array:
        """The ``horizon`` steps that follow the end of X: [horizon, N]."""
        self._fitted()
        values, gso = self._series(X, edges)
        if len(values) < self.lags_:
            raise ValueError(f"X: expected at least lags = {self.lags_} steps, got {len(values)}")
        return self._forecast(values, gso, torch.tensor([len(values) - self.lags_]))[0]

    def score(self, X: Any, edges: Any) -> float:
        """R^2 over every window of X."""
        self._fitted()
        values, gso = self._series(X, edges)
        windows = torch.arange(self._windows(len(values)))
        ahead = values[windows[:, None] + self.lags_ + torch.arange(self.horizon)][..., 0]
        return _r2(ahead.numpy(), self._forecast(values, gso, windows))


def _scale_of_windows(values: Tensor, windows: int, lags: int) -> Tuple[float, float]:
    """Mean and deviation of [T, N] over the inputs of the first windows, each step as often as they
    see it."""
    seen = torch.from_numpy(np.convolve(np.ones(windows), np.ones(lags)))[:, None]
    inputs = values[: len(seen)]
    total = float(seen.sum()) * values.shape[1]
    mean = float((seen * inputs).sum()) / total
    deviation = math.sqrt(float((seen * (inputs - mean).square()).sum()) / total)
    return mean, deviation if deviation > 0.0 else 1.0
