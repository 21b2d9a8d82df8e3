"""All clients at once, in numpy and float32."""

import numpy as np
from work import CLIENTS, ETA, LAM, ROUNDS, WIDTH, end, end_round, frequencies, x, y

x, y, frequencies = (values.astype(np.float32) for values in (x, y, frequencies))
theta = np.zeros(WIDTH, np.float32)
for t in range(ROUNDS):
    angle = x[t] @ frequencies
    z = np.concatenate([np.sin(angle), np.cos(angle)], axis=1) * np.float32(frequencies.shape[1] ** -0.5)
    theta -= np.float32(ETA) * (2 * ((z @ theta - y[t]) @ z) / CLIENTS + np.float32(2 * LAM) * theta)
    end_round()
end(theta)
