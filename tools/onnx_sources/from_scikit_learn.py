"""From scikit-learn by skl2onnx: the estimators whose files keep to the operators of ai.onnx.

Those of ai.onnx.ml that have a way round are forbidden (REPLACED). Classifiers look their labels up with an operator of
ai.onnx.ml that has none, so that of a classifier the probabilities alone are kept.
"""
import functools
import pathlib
import warnings

import numpy
import onnx
from skl2onnx import to_onnx
from skl2onnx.helpers.onnx_helper import select_model_inputs_outputs
from sklearn.base import BaseEstimator, is_classifier
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from onnx_sources import BATCHES, SEED, Export, Makers, Sample

REPLACED = {"Scaler", "LinearClassifier", "LinearRegressor", "Normalizer"}
FEATURES = 12
# Whose solution of a linear system f32 loses.
IN_F64 = {"gaussian_process"}
ESTIMATORS = {
    "mlp_classifier": MLPClassifier((64, 32), max_iter=30, random_state=SEED),
    "logistic_regression": LogisticRegression(),
    "gaussian_naive_bayes": GaussianNB(),
    "scaled_pca_logistic": make_pipeline(StandardScaler(), PCA(6), LogisticRegression()),
    "mlp_regressor": MLPRegressor(hidden_layer_sizes=(64, 32), max_iter=30, random_state=SEED),
    "linear_regression": LinearRegression(),
    "gaussian_process": GaussianProcessRegressor(alpha=1e-2),
    "k_means": KMeans(4, random_state=SEED),
    "gaussian_mixture": GaussianMixture(3, random_state=SEED),
    "quantile_transformer": QuantileTransformer(n_quantiles=20),
}


def results(estimator: BaseEstimator, x: numpy.ndarray) -> dict[str, numpy.ndarray]:
    """By the names that skl2onnx gives the outputs."""
    if is_classifier(estimator):
        return {"probabilities": estimator.predict_proba(x)}
    if isinstance(estimator, KMeans):
        return {"label": estimator.predict(x), "scores": estimator.transform(x)}
    if isinstance(estimator, GaussianMixture):
        return {"label": estimator.predict(x).reshape(-1, 1), "probabilities": estimator.predict_proba(x)}
    if isinstance(estimator, GaussianProcessRegressor):
        return {"GPmean": estimator.predict(x).reshape(-1, 1)}
    if hasattr(estimator, "predict"):
        return {"variable": estimator.predict(x).reshape(-1, 1)}
    return {"variable": estimator.transform(x)}


def as_file_has_them(outputs: dict[str, numpy.ndarray], floating: type) -> dict[str, numpy.ndarray]:
    return {name: values.astype(floating if values.dtype.kind == "f" else numpy.int64) for name, values in outputs.items()}


def export(name: str, estimator: BaseEstimator) -> Export:
    random = numpy.random.default_rng(SEED)
    floating = numpy.float64 if name in IN_F64 else numpy.float32
    x = random.standard_normal((300, FEATURES), floating)
    centres = x @ random.standard_normal((FEATURES, 4), floating)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it has not converged: nobody asked for that
        estimator.fit(x, centres.argmax(1) if is_classifier(estimator) else centres[:, 0])
    samples = []
    for batch in BATCHES:
        values = random.standard_normal((batch, FEATURES), floating)
        samples.append(Sample({"X": values}, as_file_has_them(results(estimator, values), floating)))

    def write(path: pathlib.Path) -> None:
        options = {"zipmap": False} if is_classifier(estimator) else None
        model = to_onnx(estimator, x[:1], options=options, black_op=REPLACED)
        if is_classifier(estimator):
            model = select_model_inputs_outputs(model, "probabilities")
        foreign = {node.op_type for node in model.graph.node if node.domain}
        if foreign:
            raise ValueError(f"operators of ai.onnx.ml are left: {', '.join(sorted(foreign))}")
        onnx.save(model, path)

    return Export(write, samples)


def makers() -> Makers:
    return {f"{name}.skl2onnx": functools.partial(export, name, estimator) for name, estimator in ESTIMATORS.items()}
