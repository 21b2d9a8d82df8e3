"""Levels alpha_t of adaptive conformal inference by MAPIE 1.6.0, and whether each target was outside its interval.

Run in an environment with MAPIE: ``python mapie_aci.py > mapie_aci.json``.
"""

import json

import numpy as np
from mapie.regression import TimeSeriesRegressor
from sklearn.dummy import DummyRegressor

GAMMA, LEVELS = 0.02, [0.8, 0.9, 0.95]
rng = np.random.default_rng(0)
y = rng.standard_normal(300)
y[200:] *= 2  # a change of the spread, to which alpha_t adapts
x = np.zeros((300, 1))
model = TimeSeriesRegressor(DummyRegressor(strategy="constant", constant=0.0), method="aci", cv="prefit")
model.estimator.fit(x[:100], y[:100])
model.fit(x[:100], y[:100])
alphas, outside = [], []
for t in range(100, 300):
    here = slice(t, t + 1)
    _, bounds = model.predict(x[here], confidence_level=LEVELS, allow_infinite_bounds=True)
    outside.append([int(not bounds[0, 0, i] < y[t] < bounds[0, 1, i]) for i in range(len(LEVELS))])
    model.adapt_conformal_inference(x[here], y[here], gamma=GAMMA, confidence_level=LEVELS)
    model.update(x[here], y[here])
    alphas.append([float(model.current_alpha[key]) for key in sorted(model.current_alpha, reverse=True)])
print(json.dumps({"gamma": GAMMA, "outside": outside, "alpha": alphas}))
