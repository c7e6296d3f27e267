# SPDX-License-Identifier: MIT
"""Forecasts of series at the nodes of a graph without writing a model."""

from __future__ import annotations

import math
from typing import Any, Iterator, Optional, Tuple

import numpy as np
import torch
from torch import Tensor

from mpssm._estimator import Array, Estimator, r2_score
from mpssm._inputs import as_array, gso_of, is_frame
from mpssm.gso import Gso
from mpssm.nn import MPSSM


class Forecaster(Estimator):
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
        return r2_score(ahead.numpy(), self._forecast(values, gso, windows))


def _scale_of_windows(values: Tensor, windows: int, lags: int) -> Tuple[float, float]:
    """Mean and deviation of [T, N] over the inputs of the first windows, each step as often as they
    see it."""
    seen = torch.from_numpy(np.convolve(np.ones(windows), np.ones(lags)))[:, None]
    inputs = values[: len(seen)]
    total = float(seen.sum()) * values.shape[1]
    mean = float((seen * inputs).sum()) / total
    deviation = math.sqrt(float((seen * (inputs - mean).square()).sum()) / total)
    return mean, deviation if deviation > 0.0 else 1.0
