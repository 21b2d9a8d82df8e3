"""Expected coverages of FedCP-QQ's authors: pierreHmbt/FedCP-QQ at 08a94a8, unchanged.

Run in an environment with numpy and scipy, in a folder with their class_CP_QQ.py:
``python fedcp_qq.py > fedcp_qq.json``.
"""

import json

from class_CP_QQ import calc_matrix_M

CASES = ((5, 10), (3, 7), (8, 4), (1, 12), (10, 1))
print(json.dumps([{"clients": m, "rows": n, "coverage": calc_matrix_M(m, n, 0.5).tolist()} for m, n in CASES]))
