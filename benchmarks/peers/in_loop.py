"""A loop over clients, in numpy."""

import numpy as np
from work import CLIENTS, ETA, ROUNDS, WIDTH, end, end_round, gradient

theta = np.zeros(WIDTH)
for t in range(ROUNDS):
    total = np.zeros(WIDTH)
    for k in range(CLIENTS):
        total += gradient(theta, t, k)
    theta -= ETA * total / CLIENTS
    end_round()
end(theta)
