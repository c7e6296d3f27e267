# SPDX-License-Identifier: MIT
"""What all estimators have: parameters as scikit-learn wants them, and the training loop."""

from __future__ import annotations

import copy
import inspect
import math
import sys
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpssm._progress import Progress
from mpssm.nn import MPSSM

Array = NDArray[Any]


class Estimator:
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
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.non_deterministic = self.get_params()["random_state"] is None
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
            # scikit-learn's own kind of ValueError where somebody uses scikit-learn.
            kind = getattr(sys.modules.get("sklearn.exceptions"), "NotFittedError", ValueError)
            raise kind(f"{type(self).__name__}: expected fit() before this")
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
         {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0}], lr=lr,
        fused=True)  # one call for all parameters: a small model has more of them than work


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
    value.backward()
    optimiser.step()
    return number


def r2_score(truth: Array, predicted: Array) -> float:
    deviation = ((truth - truth.mean()) ** 2).sum()
    error = ((truth - predicted) ** 2).sum()
    if deviation == 0.0:
        return 1.0 if error == 0.0 else 0.0
    return float(1.0 - error / deviation)
