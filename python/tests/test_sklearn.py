# SPDX-License-Identifier: MIT
"""scikit-learn's own checks of an estimator, as far as nodes of a graph allow them."""

import numpy as np
import pytest

import mpssm

pytest.importorskip("sklearn")
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

QUICK = dict(channels=16, blocks=1, hops=1, epochs=40, lr=1e-2, dropout=0.0)
UNKNOWN = "-1 says that a class is not known"
BY_NAME = "columns of a table are found by their names, in any order"
EXPECTED = {
    "check_dataframe_column_names_consistency": BY_NAME,
}


@pytest.mark.parametrize("estimator", [
    mpssm.NodeClassifier(**QUICK),
    mpssm.NodeRegressor(**QUICK),
], ids=lambda estimator: type(estimator).__name__)
def test_check_estimator(estimator):
    expected = {**EXPECTED, **({"check_classifiers_classes": UNKNOWN}
                               if isinstance(estimator, mpssm.NodeClassifier) else {})}
    results = check_estimator(estimator, expected_failed_checks=expected, on_fail=None, on_skip=None)
    failed = {result["check_name"]: result["exception"] for result in results
              if result["status"] == "failed"}
    assert not failed, failed
    assert sum(result["status"] == "passed" for result in results) >= 35


def test_without_edges_nodes_are_by_themselves():
    draw = np.random.default_rng(0)
    x = draw.normal(size=(60, 2))
    y = (x[:, 0] > 0).astype(int)
    alone = mpssm.NodeClassifier(**QUICK).fit(x, y)
    np.testing.assert_array_equal(alone.predict_proba(x), mpssm.NodeClassifier(**QUICK).fit(
        x, y, np.zeros((2, 0), dtype=int)).predict_proba(x, np.zeros((2, 0), dtype=int)))
    np.testing.assert_allclose(alone.predict_proba(x[:5]), alone.predict_proba(x)[:5], atol=1e-6)
    ring = np.array([np.arange(60), (np.arange(60) + 1) % 60])
    heard = mpssm.NodeClassifier(**QUICK).fit(x, y, ring)
    with pytest.raises(ValueError, match="edges: expected the graph of these nodes, as in fit"):
        heard.predict(x)
