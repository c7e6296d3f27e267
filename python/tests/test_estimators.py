# SPDX-License-Identifier: MIT
"""Estimators learn what only the graph tells, keep scikit-learn's conventions, and leave torch alone."""

import copy
import inspect
import pickle
import re
import subprocess
import sys

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch

import mpssm
from test_run import PROGRAM, needs_program

QUICK = dict(channels=16, blocks=1, hops=3, epochs=60, lr=1e-2)
NODES = 240


def planted(seed=0):
    """A number at every node, edges [2, E] listed once, and the mean of it over neighbours."""
    graph = networkx.random_regular_graph(4, NODES, seed=seed)
    x = np.random.default_rng(seed).normal(size=(NODES, 1))
    heard = networkx.to_numpy_array(graph, nodelist=range(NODES)) @ x[:, 0] / 2.0
    return x, np.array(graph.edges).T, heard


def half(seed=1):
    return np.random.default_rng(seed).random(NODES) < 0.6


def no_edges():
    return np.zeros((2, 0), dtype=np.int64)


@pytest.mark.parametrize("cuts", [[0.0], [-0.6, 0.6]])
def test_classifier_learns_what_the_features_alone_do_not_tell(cuts):
    x, edges, heard = planted()
    y, known = np.digitize(heard, cuts), half()
    learned = mpssm.NodeClassifier(**QUICK).fit(x, y, edges, mask=known)
    alone = mpssm.NodeClassifier(**QUICK).fit(x, y, no_edges(), mask=known)
    accuracy = learned.score(x, y, edges, mask=~known)
    assert accuracy > 0.75
    assert accuracy > alone.score(x, y, no_edges(), mask=~known) + 0.15
    probability = learned.predict_proba(x, edges)
    assert probability.shape == (NODES, len(cuts) + 1)
    np.testing.assert_allclose(probability.sum(1), 1.0, atol=1e-6)
    np.testing.assert_array_equal(learned.predict(x, edges), learned.classes_[probability.argmax(1)])
    assert learned.score(x, y, edges, mask=~known) == pytest.approx(
        (learned.predict(x, edges) == y)[~known].mean())


def test_regressor_learns_what_the_features_alone_do_not_tell():
    x, edges, heard = planted()
    y = np.where(half(), 40.0 + 9.0 * heard, np.nan)
    learned = mpssm.NodeRegressor(**QUICK).fit(x, y, edges)
    alone = mpssm.NodeRegressor(**QUICK).fit(x, y, no_edges())
    truth, hidden = 40.0 + 9.0 * heard, ~half()
    assert learned.score(x, truth, edges, mask=hidden) > 0.9
    assert alone.score(x, truth, no_edges(), mask=hidden) < 0.2
    predicted = learned.predict(x, edges)
    error = ((predicted - truth)[hidden] ** 2).sum()
    spread = ((truth[hidden] - truth[hidden].mean()) ** 2).sum()
    assert learned.score(x, truth, edges, mask=hidden) == pytest.approx(1 - error / spread)


def test_forecaster_learns_a_wave_that_travels():
    # What a node does is what its neighbour before it did two steps ago: one hop of the recurrence,
    # since the state that a hop brings is that of the step before.
    draw = np.random.default_rng(0)
    steps, nodes = 220, 8
    series = np.zeros((steps, nodes))
    series[:, 0] = draw.normal(size=steps)
    for t in range(2, steps):
        series[t, 1:] = series[t - 2, :-1]
    series = 10.0 + 3.0 * series
    edges = np.array([np.arange(nodes - 1), np.arange(1, nodes)])
    settings = dict(lags=3, channels=16, blocks=1, epochs=40, batch=16, lr=1e-2, directed=True,
                    dropout=0.0, kind="adjacency")
    learned = mpssm.Forecaster(**settings).fit(series[:180], edges)
    forecast = learned.predict(series[:200], edges)
    assert forecast.shape == (1, nodes)
    # Node 0 hears nobody and is noise; the others can be known.
    assert np.abs(forecast[0, 1:] - series[200, 1:]).max() < 1.0
    alone = mpssm.Forecaster(**settings).fit(series[:180], no_edges())
    assert np.abs(alone.predict(series[:200], no_edges())[0, 1:] - series[200, 1:]).max() > 2.0
    windows = [learned.predict(series[180 : t], edges)[0] for t in range(183, 220)]
    truth = series[183:220]
    expected = 1 - ((windows - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum()
    assert learned.score(series[180:], edges) == pytest.approx(expected, abs=1e-6)
    further = mpssm.Forecaster(**{**settings, "epochs": 1}, horizon=3).fit(series[..., None], edges)
    assert further.predict(series, edges).shape == (3, nodes)
    assert mpssm.Forecaster(epochs=1).fit(series, edges).lags_ == 12
    assert mpssm.Forecaster(epochs=1).fit(series[:50], edges).lags_ == 4


def test_scale_of_a_series_is_that_of_the_training_windows():
    series = np.random.default_rng(0).normal(5.0, 2.0, size=(40, 3))
    fitted = mpssm.Forecaster(epochs=1, lags=4).fit(series, no_edges())
    windows = np.stack([series[t : t + 4] for t in range(36)])
    inputs = windows[: 36 - round(36 / 8)]
    assert fitted.mean_ == pytest.approx(inputs.mean())
    assert fitted.scale_ == pytest.approx(inputs.std())


# ---- conventions ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [mpssm.NodeClassifier, mpssm.NodeRegressor, mpssm.Forecaster])
def test_parameters_go_round(kind):
    estimator = kind(channels=10, lr=0.5)
    given = estimator.get_params()
    assert given["channels"] == 10 and set(given) == set(kind()._parameter_names())
    assert kind(**given).get_params() == given
    assert estimator.set_params(channels=12) is estimator and estimator.channels == 12
    assert repr(estimator) == f"{kind.__name__}(channels=12, lr=0.5)"
    with pytest.raises(ValueError, match="expected one of .*channels.*, got 'chanels'"):
        estimator.set_params(chanels=1)
    base = pytest.importorskip("sklearn.base")
    assert base.clone(estimator).get_params() == estimator.get_params()
    assert base.clone(estimator) is not estimator


def test_fitted_estimators_pickle_copy_and_are_cloned_without_what_they_learned():
    x, edges, heard = planted()
    fitted = mpssm.NodeRegressor(**{**QUICK, "epochs": 3}).fit(x, heard, edges)
    expected = fitted.predict(x, edges)
    for again in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        np.testing.assert_array_equal(again.predict(x, edges), expected)
    validation = pytest.importorskip("sklearn.utils.validation")
    validation.check_is_fitted(fitted)
    base = pytest.importorskip("sklearn.base")
    assert base.is_regressor(fitted) and base.is_classifier(mpssm.NodeClassifier())
    with pytest.raises(ValueError, match="fit"):
        validation.check_is_fitted(base.clone(fitted))


def test_the_same_random_state_gives_the_same_bits_and_leaves_torch_alone():
    x, edges, heard = planted()
    y = (heard > 0).astype(int)
    settings = {**QUICK, "epochs": 5}
    torch.manual_seed(5)
    before, numpys = torch.get_rng_state(), np.random.get_state()[1].copy()
    threads = torch.get_num_threads()
    first = mpssm.NodeClassifier(**settings, random_state=3).fit(x, y, edges)
    assert torch.equal(torch.get_rng_state(), before)
    assert (np.random.get_state()[1] == numpys).all()
    assert torch.get_num_threads() == threads and torch.is_grad_enabled()
    torch.manual_seed(99)
    again = mpssm.NodeClassifier(**settings, random_state=3).fit(x, y, edges)
    other = mpssm.NodeClassifier(**settings, random_state=4).fit(x, y, edges)
    np.testing.assert_array_equal(first.predict_proba(x, edges), again.predict_proba(x, edges))
    assert first.history_ == again.history_
    assert (first.predict_proba(x, edges) != other.predict_proba(x, edges)).any()


def test_an_error_in_mid_training_gives_the_generator_back():
    x, edges, heard = planted()
    before = torch.get_rng_state()
    with pytest.raises(RuntimeError, match="not a finite number any more .*smaller lr"):
        mpssm.NodeRegressor(**{**QUICK, "lr": 1e30}).fit(x, heard, edges)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_best_epoch_on_validation_is_kept_and_patience_ends():
    x, edges, heard = planted()
    validation = np.zeros(NODES, dtype=bool)
    validation[:80] = True
    fitted = mpssm.NodeRegressor(**{**QUICK, "patience": 5, "epochs": 400}).fit(
        x, heard, edges, validation=validation)
    scores = [row["val_score"] for row in fitted.history_]
    assert fitted.best_epoch_ == int(np.argmax(scores)) + 1
    assert len(scores) == fitted.best_epoch_ + 5
    mae = np.abs(fitted.predict(x, edges) - heard)[validation].mean()
    assert -mae == pytest.approx(max(scores), rel=1e-4)


# ---- what can be given ----------------------------------------------------------------------


def test_edges_in_every_form_are_the_same_graph():
    pandas = pytest.importorskip("pandas")
    x, edges, heard = planted()
    frame = pandas.DataFrame({"src": edges[0], "dst": edges[1]})
    both = np.concatenate([edges, edges[::-1]], 1)
    graph = networkx.Graph()
    graph.add_nodes_from(range(NODES))
    graph.add_edges_from(edges.T)
    matrix = scipy.sparse.coo_array((np.ones(edges.shape[1]), tuple(edges)), (NODES, NODES))
    gso = mpssm.Gso.from_edge_index(torch.from_numpy(both), num_nodes=NODES)
    fitted = mpssm.NodeRegressor(**{**QUICK, "epochs": 2}).fit(x, heard, edges)
    expected = fitted.predict(x, edges)
    for form in (torch.from_numpy(edges), both, edges.tolist(), frame,
                 frame.rename(columns={"src": "from", "dst": "to"}), graph, graph.to_directed(),
                 matrix, matrix.tocsr(), gso):
        np.testing.assert_allclose(fitted.predict(x, form), expected, rtol=1e-5, atol=1e-6)
    torch_x = torch.from_numpy(x)
    np.testing.assert_array_equal(fitted.predict(torch_x, edges), expected)


def test_tables_with_names_and_text():
    pandas = pytest.importorskip("pandas")
    names = ["harbour", "orchard", "ridge", "summit", "meadow", "mill"]
    nodes = pandas.DataFrame(
        {"height": [3, 40, 380, 470, 55, 20], "land": ["town", "field", "wood", None, "field", "town"],
         "kind": pandas.Categorical([1, 2, 1, 2, 1, 2])}, index=names)
    edges = pandas.DataFrame({"src": ["harbour", "orchard", "meadow", "ridge", "summit"],
                              "dst": ["orchard", "meadow", "ridge", "summit", "mill"],
                              "weight": [2.0, 3.0, 1.0, 2.0, 0.5]})
    y = pandas.Series(["warm", "warm", "cold", "cold", None, "warm"], index=names)
    fitted = mpssm.NodeClassifier(channels=8, blocks=1, epochs=3).fit(nodes, y, edges)
    assert fitted.classes_.tolist() == ["cold", "warm"]
    assert fitted.n_features_in_ == 3
    assert fitted.feature_names_in_.tolist() == ["height", "land", "kind"]
    assert fitted.model_.in_channels == 1 + 3 + 2
    seen = fitted.columns_.transform(nodes).numpy()
    np.testing.assert_allclose(seen[:, 0].mean(), 0.0, atol=1e-6)
    np.testing.assert_allclose(seen[:, 0].std(), 1.0, atol=1e-6)
    np.testing.assert_array_equal(seen[:, 1:4], [[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0], [1, 0, 0],
                                                 [0, 1, 0]])  # field, town, wood
    np.testing.assert_array_equal(seen[:, 4], [1, 0, 1, 0, 1, 0])

    # Rows and columns may come in another order, and text that is new counts as none.
    expected = fitted.predict_proba(nodes, edges)
    order = [4, 2, 0, 5, 1, 3]
    turned = nodes.iloc[order][["kind", "land", "height"]]
    np.testing.assert_allclose(fitted.predict_proba(turned, edges), expected[order], atol=1e-6)
    changed = nodes.assign(land=["lake"] * 6)
    assert fitted.columns_.transform(changed)[:, 1:4].abs().sum() == 0
    # The graph was read by name: with its edges dropped the answer is another.
    assert np.abs(fitted.predict_proba(nodes, edges.iloc[:0]) - expected).max() > 1e-4

    for y in ([1, 1, 0, 0, -1, 1], [1.0, 1.0, 0.0, 0.0, float("nan"), 1.0]):
        numbered = mpssm.NodeClassifier(channels=8, blocks=1, epochs=3).fit(nodes, y, edges)
        np.testing.assert_allclose(numbered.predict_proba(nodes, edges), expected, atol=1e-6)


def test_forecaster_reads_names_of_columns():
    pandas = pytest.importorskip("pandas")
    series = np.random.default_rng(0).normal(size=(30, 3))
    frame = pandas.DataFrame(series, columns=["a", "b", "c"])
    edges = pandas.DataFrame({"src": ["a"], "dst": ["c"]})
    fitted = mpssm.Forecaster(channels=8, blocks=1, epochs=2).fit(frame, edges)
    np.testing.assert_allclose(fitted.predict(frame, edges), fitted.predict(series, [[0], [2]]),
                               rtol=1e-6)


def test_missing_numbers_become_the_median_and_are_marked():
    pandas = pytest.importorskip("pandas")
    nodes = pandas.DataFrame({
        "height": [3.0, None, 1.0, 2.0, 10.0, 2.0],
        "age": pandas.array([4, 4, None, 2, 4, 8], dtype="Int64"),
        "old": pandas.array([True, None, False, True, True, False], dtype="boolean"),
        "land": ["town", None, "field", "town", "field", "town"],
        "full": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]})
    fitted = mpssm.NodeClassifier(channels=8, blocks=1, epochs=3, standardise=False).fit(
        nodes, [0, 1, 0, 1, 0, 1])
    seen = fitted.columns_.transform(nodes).numpy()
    np.testing.assert_array_equal(seen[:, 0], [3, 2, 1, 2, 10, 2])  # median 2
    np.testing.assert_array_equal(seen[:, 1], [0, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(seen[:, 2], [4, 4, 4, 2, 4, 8])
    np.testing.assert_array_equal(seen[:, 3], [0, 0, 1, 0, 0, 0])
    np.testing.assert_array_equal(seen[:, 4:6], [[1, 0], [1, 1], [0, 0], [1, 0], [1, 0], [0, 0]])
    np.testing.assert_array_equal(seen[:, 6:8], [[0, 1], [0, 0], [1, 0], [0, 1], [1, 0], [0, 1]])
    np.testing.assert_array_equal(seen[:, 8], nodes["full"])
    # A column that was whole in training has no mark; what is missing later is the median.
    later = nodes.assign(full=[None, 2.0, 3.0, 4.0, 5.0, 6.0])
    np.testing.assert_array_equal(fitted.columns_.transform(later).numpy()[:, 8], [3.5, 2, 3, 4, 5, 6])
    assert fitted.predict(later).shape == (6,)
    # The scale is that of the numbers that are there.
    scaled = mpssm.NodeClassifier(channels=8, blocks=1, epochs=3).fit(nodes, [0, 1, 0, 1, 0, 1])
    height = scaled.columns_.transform(nodes).numpy()[:, 0]
    there = np.array([3.0, 1.0, 2.0, 10.0, 2.0])
    np.testing.assert_allclose(height[[0, 2, 3, 4, 5]], (there - there.mean()) / there.std(), rtol=1e-6)


def bad_inputs():
    x, edges, heard = planted()
    y = (heard > 0).astype(int)
    hole = x.copy()
    hole[3, 0] = np.inf
    classifier, regressor = mpssm.NodeClassifier(epochs=1), mpssm.NodeRegressor(epochs=1)
    forecaster = mpssm.Forecaster(epochs=1)
    return [
        (lambda: classifier.fit(x[:, 0], y, edges), r"expected features of shape \[N, F\]"),
        (lambda: classifier.fit(hole, y, edges), "column 0, row 3: expected a finite number, got inf"),
        (lambda: classifier.fit(np.full_like(x, np.nan), y, edges), "column 0: .*in some row, got none"),
        (lambda: classifier.fit(x, heard, edges), "numbers with fractions .*NodeRegressor"),
        (lambda: classifier.fit(x, None, edges), "the target y is None"),
        (lambda: classifier.fit(x, y[:5], edges), "expected a label or nothing for each of 240"),
        (lambda: classifier.fit(x, np.ones(NODES), edges), "expected at least two classes"),
        (lambda: classifier.fit(x, np.full(NODES, -1), edges), "two classes, got none .*-1 say"),
        (lambda: classifier.fit(x, y, edges.T), r"expected edge_index \[2, E\].*transpose"),
        (lambda: classifier.fit(x, y, edges + 1), "240"),
        (lambda: classifier.fit(x, y, networkx.Graph([("a", "b")])), "240 nodes of X, got one of 2"),
        (lambda: classifier.fit(x, y, networkx.path_graph(NODES + 1)), "240 nodes of X, got one of 241"),
        (lambda: classifier.fit(x, y, edges, mask=np.ones(3)), "expected True or False for each"),
        (lambda: classifier.fit(x, y, edges, validation=y == 1), "got none of class"),
        (lambda: classifier.predict(x, edges), "expected fit"),
        (lambda: classifier.set_params(epochs=0).fit(x, y, edges), "expected epochs of 1 or more"),
        (lambda: mpssm.NodeClassifier(validation_fraction=1.0).fit(x, y, edges),
         "validation_fraction between 0 and 1"),
        (lambda: regressor.fit(x, ["a"] * NODES, edges), "expected numbers, got text; NodeClassifier"),
        (lambda: regressor.fit(x, [None] * (NODES - 1) + [1.0], edges), "give more labels"),
        (lambda: regressor.fit(x, heard, edges).predict(np.ones((NODES, 2)), edges),
         "X has 2 features, but NodeRegressor is expecting 1 features"),
        (lambda: forecaster.fit(np.ones((4, 3)), no_edges()), "expected at least lags"),
        (lambda: forecaster.fit(np.full((40, 3), np.nan), no_edges()), "step 0, node 0: expected"),
        (lambda: forecaster.fit(np.ones(40), no_edges()), r"expected a series of shape \[T, N\]"),
        (lambda: forecaster.predict(np.ones((40, 3)), no_edges()), "expected fit"),
    ]


@pytest.mark.parametrize("number", range(24))
def test_errors_say_what_was_expected(number):
    cases = bad_inputs()
    assert len(cases) == 24
    call, words = cases[number]
    with pytest.raises(ValueError, match=words):
        call()


def test_progress_is_quiet_unless_asked_for(capsys):
    x, edges, heard = planted()
    mpssm.NodeRegressor(**{**QUICK, "epochs": 2}).fit(x, heard, edges)
    assert capsys.readouterr() == ("", "")
    mpssm.NodeRegressor(**{**QUICK, "epochs": 2}, verbose=True).fit(x, heard, edges)
    out, err = capsys.readouterr()
    assert out == "" and "] 2/2 " in err and err.endswith("\n")


def test_only_torch_and_numpy_are_imported():
    """Nor what torch itself imports late, its compiler: until a model is asked, of edges too."""
    script = ("import sys, torch, mpssm\n"
              "mpssm.nn.MPSSM(3, 4, 2)(torch.ones(2, 3), torch.tensor([[0], [1]]))\n"
              "late = ('pandas', 'matplotlib', 'sklearn', 'torch._dynamo')\n"
              "print([name for name in late if name in sys.modules])")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ---- the program ----------------------------------------------------------------------------


@needs_program
def test_defaults_are_those_of_the_program():
    keys = subprocess.run([PROGRAM, "train", "--keys"], capture_output=True, text=True, check=True)
    said = {key.split(".")[-1]: value
            for key, value in re.findall(r"^(?:data\.|model\.|train\.)?(\w+) +(\S+)", keys.stdout, re.M)}
    said["random_state"], said["kind"] = said["seed"], said["gso"]
    # There "auto" looks for pairs with two weights; tables of edges here say it themselves.
    assert said.pop("directed") == "auto"
    said["directed"] = "false"
    of_python_alone = {"validation_fraction", "verbose"}
    of_the_dataset = {"lags", "horizon"}  # there 0; for a series of one's own: see docs/data.md
    for kind in (mpssm.NodeClassifier, mpssm.NodeRegressor, mpssm.Forecaster):
        for name, parameter in inspect.signature(kind).parameters.items():
            if name not in of_python_alone | of_the_dataset:
                default = parameter.default
                text = str(default).lower() if isinstance(default, (bool, str)) else f"{default:g}"
                assert text == said[name], name
