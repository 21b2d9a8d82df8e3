"""OMKL-GF, OMKL-SFG, OMKL-SFG-R: Ghari and Shen, Graph-Aided Online Multi-Kernel Learning, JMLR 24 (2023).

The theorems assume a constant eta and a constant exploration rate. fkl's rates fall, as in the paper's experiments, so
both sides are sums over rounds, weighted by eta_t. With a constant rate, this is the printed inequality times eta.

Given the graph, a kernel's loss is observed with probability r_i = sum_j p_j A_ij, and divided by q_i. The mean of the
estimate is then a_i L_i with a_i = r_i / q_i. The proofs assume that a_i has mean 1. This is false for OMKL-GF with J >
1, for floors, and for losses that are divided by eqs. (21) or (36) after `exploring` rounds. The corrected forms hold
for all a_i, because the terms in 1 - a_i are computed from the run.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import softmax
from fkl.algorithms.online.omkl_gf import OmklGf
from fkl.algorithms.online.omkl_sfg import OmklSfgR
from fkl.basics.arrays import Array
from fkl.contract.world import World
from fkl.theory.base import EXPECTED, Assumption, Form, Theorem, rounds_of
from fkl.theory.descent import DescentSums, best_in_features

PAPER = "Ghari and Shen, JMLR 2023"


class SelectedKernels(NamedTuple):
    """The draw of a node in one round, given the graph, and the weights of its kernels.

    Parameters
    ----------
    drawn, divisor : (J,)
        Probability of each node, and the divisor of its loss.
    q : (N,)
        Divisor of each kernel's loss.
    A : (J, N)
        Kernels of each node.
    w : (J, N)
        Weights of each node's kernels, which sum to 1.
    """

    drawn: Array
    divisor: Array
    q: Array
    A: Array
    w: Array


@dataclass(frozen=True)
class GraphOmklRecord:
    """Values of one replicate for its theorems: of each round, and sums weighted by eta_t.

    Parameters
    ----------
    method : OmklGf or OmklSfg
    rates : (T, 1)
        eta_t.
    descent : DescentSums
    u, best : (N, P), (T, N)
        Ridge fits in features, and their losses weighted by eta_t.
    at_zero : float
        sum_t eta_t l(0, y).
    nodes : Nodes or None
        Values of nodes, for a graph whose nodes are the kernels.
    loss, a, q : (T, N)
        Losses of the kernels, mean of the estimate divided by the loss, and divisors.
    w : (T, N)
        Weights of all kernels, which sum to 1.
    used : (T, N)
        Mean weight with which each kernel predicts: sum_j p_j w_ij, where w_ij is its weight at node j.
    mixture : (T, 1)
        Mean loss of the prediction over the node's draw.
    """

    method: Any
    rates: Array
    descent: DescentSums
    u: Array
    best: Array
    at_zero: float
    nodes: "NodeRecords | None"
    loss: Array
    a: Array
    q: Array
    w: Array
    used: Array
    mixture: Array

    def weighted_sum(self, values: Array) -> Array:
        """sum_t eta_t values_t after each round."""
        return np.cumsum(self.rates * values, axis=0)

    @property
    def on_printed(self) -> tuple[Assumption, ...]:
        """Assumptions of all printed forms."""
        # The printed forms assume one rate, bounded losses, and a draw in every round
        method, rounds, largest = self.method, len(self.rates), self.loss.max()
        first, last = self.rates[[0, -1], 0]
        drawn = rounds <= method.exploring or getattr(method, "settle", "best") == "never"
        floors = [f"algo.{key}={getattr(method, key)}" for key in ("q_floor", "p_floor") if getattr(method, key, 0)]
        return (
            Assumption("one constant rate", f"eta_t falls from {first:.3g} to {last:.3g}" if last < first else ""),
            Assumption("(as2) losses in [0, 1]", f"losses reach {largest:.3g}" if largest > 1 else ""),
            Assumption("a draw in every round", "" if drawn else f"algo.exploring={method.exploring}"),
            Assumption("no floors of probabilities", ", ".join(floors)),
            Assumption("exact draws", "" if method.draw == "exact" else f"algo.draw={method.draw}"),
        )

    @property
    def start(self) -> Array:
        """|u_i|^2 / 2, (N,)."""
        told: Array = (self.u**2).sum(axis=-1) / 2
        return told

    @property
    def of_descent(self) -> Array:
        """Right-hand side of Lemma 7, corrected, (T, N)."""
        unseen = self.weighted_sum((1 - self.a) * self.loss) - np.cumsum((1 - self.a) * self.best_of_rounds, axis=0)
        return self.start + self.descent.squared / 2 + unseen

    @property
    def best_of_rounds(self) -> Array:
        """eta_t L_i(u) of each round, (T, N)."""
        return np.diff(self.best, axis=0, prepend=0)

    @property
    def printed_of_descent(self) -> Array:
        """Right-hand side of Lemma 7 as printed, (T, N)."""
        return self.start + self.descent.lipschitz**2 * self.weighted_sum(self.rates / self.q) / 2

    @property
    def of_weights(self) -> Array:
        """Right-hand side of Lemma 8, corrected, (T, N)."""
        spread = (self.w * ratio_or_zero(self.a, self.q) * self.loss**2).sum(axis=1, keepdims=True)
        apart = ((self.used - self.a * self.w) * self.loss).sum(axis=1, keepdims=True)
        of_all = np.log(self.loss.shape[1]) + self.weighted_sum(self.rates * spread / 2 + apart)
        return of_all - self.weighted_sum((1 - self.a) * self.loss)

    @property
    def printed_of_weights(self) -> Array:
        """Right-hand side of Lemma 8 as printed, (T, 1); the exploration rate is eta_t."""
        N, eta = self.loss.shape[1], self.rates
        return np.log(N) + self.weighted_sum(self.method.J * eta + N * eta / (2 * (1 - eta)))

    def left_side(self, comparator: Array) -> Array:
        """Left-hand side of a bound of the prediction's expected loss, given the comparators' sums (T, N)."""
        return self.weighted_sum(self.mixture) - comparator


@dataclass(frozen=True)
class NodeRecords:
    """Values of each round for nodes that are kernels; node i has kernel i and its out-neighbours.

    Parameters
    ----------
    loss : (T, N)
        Loss of each node's prediction.
    a, divisor : (T, N)
        Mean of the estimate divided by the loss, and divisors of the loss.
    u, drawn : (T, N)
        Weights, which sum to 1, and probabilities.
    printed, spread, unseen : (T, N)
        sum_j w_ij / q_j, sum_j w_ij (a_j / q_j) L_j^2 and sum_j w_ij (1 - a_j) L_j over the kernels j of each node i.
    edges : (T, N)
        Logarithm of the factor by which new and removed edges change the sum of w over the node's kernels before the
        round. Before the first round, a node has only its own kernel.
    """

    loss: Array
    a: Array
    divisor: Array
    u: Array
    drawn: Array
    printed: Array
    spread: Array
    unseen: Array
    edges: Array

    def of_draw(self, record: GraphOmklRecord) -> Array:
        """Right-hand side of Lemma 10, corrected, (T, N)."""
        spread = (self.u * ratio_or_zero(self.a, self.divisor) * self.loss**2).sum(axis=1, keepdims=True)
        apart = ((self.drawn - self.a * self.u) * self.loss).sum(axis=1, keepdims=True)
        of_all = np.log(self.loss.shape[1]) + record.weighted_sum(record.rates * spread / 2 + apart)
        return of_all - record.weighted_sum((1 - self.a) * self.loss)

    def printed_of_draw(self, record: GraphOmklRecord) -> Array:
        """Right-hand side of eq. (120), (T, 1); the exploration rate is eta_t."""
        N, eta = self.loss.shape[1], record.rates
        return np.log(N) + record.weighted_sum(eta + eta * N / 2 - eta**2 / 2)

    def of_kernels(self, record: GraphOmklRecord) -> Array:
        """Right-hand side of Lemma 11, corrected, (T, N)."""
        own = record.weighted_sum((1 - record.a) * record.loss)
        terms = record.weighted_sum(record.rates * self.spread / 2 + self.unseen)
        return np.cumsum(self.edges, axis=0) + terms - own

    def printed_of_kernels(self, record: GraphOmklRecord) -> Array:
        """Right-hand side of Lemma 11 as printed, (T, N)."""
        return self.edges[0] + record.weighted_sum(record.rates * self.printed / 2)


def theorems(record: GraphOmklRecord) -> Iterator[Theorem]:
    """Bounds of every kernel's descent, then of the prediction: by OMKL-GF's weights, or by OMKL-SFG's nodes."""
    of_kernels, targets = record.weighted_sum(record.loss), record.at_zero
    # Lemma 7, eq. (51): against the ridge fit in the kernel's features. Like POF-MKL's Lemma 3, it holds in expectation
    # over the draws. The corrected form has |g|^2 instead of L^2.
    yield _named_theorem(
        record,
        ("Lemma 7", "kernel", of_kernels - record.best, targets - record.best[-1]),
        ("sum_t eta_t (L_i - L_i(u)) <= |u|^2 / 2 + (1/2) sum_t eta_t^2 L^2 / q_i", record.printed_of_descent),
        (
            "E sum_t eta_t (L_i - L_i(u)) <= |u|^2 / 2 + E sum_t [eta_t^2 a_i |g_i|^2 / (2 q_i)"
            " + eta_t (1 - a_i) (L_i - L_i(u))]",
            record.of_descent,
        ),
    )
    yield from _of_weights(record) if record.nodes is None else _of_nodes(record, record.nodes)


def _of_weights(record: GraphOmklRecord) -> Iterator[Theorem]:
    """Bounds of OMKL-GF's prediction against every kernel."""
    of_kernels, targets = record.weighted_sum(record.loss), record.at_zero
    # Lemma 8, eq. (61): against the losses of the kernel. Two steps of the proof seem wrong. (75a) assumes that a_i has
    # mean 1, but p_j of eq. (18) depends on the graph, so the mean of A_ij p_j is not that of (21). And (88) bounds the
    # weight with which a kernel predicts by sum_j p_j pi_ij. With M > 1, a heavy kernel predicts more often. The
    # corrected form uses the weights with which kernels predict.
    start = "sum_t eta_t (E_t L(f_hat) - L_i) <= ln N + "
    yield _named_theorem(
        record,
        ("Lemma 8", "kernel", record.left_side(of_kernels), targets - of_kernels[-1]),
        (start + "sum_t [eta_t eta_e J + eta_t^2 N / (2 (1 - eta_e))]", record.printed_of_weights),
        (
            f"E {start}E sum_t [(eta_t^2 / 2) sum_k w_k (a_k / q_k) L_k^2"
            " + eta_t sum_k (rho_k - a_k w_k) L_k - eta_t (1 - a_i) L_i], rho_k the mean weight of kernel k in f_hat",
            record.of_weights,
        ),
    )
    # Lemma 1, eq. (22): against the ridge fit in the kernel's features. It is the sum of Lemmas 7 and 8, with 1 / q_i
    # <= N J / eta_e^2 as printed.
    start = "sum_t eta_t (E_t L(f_hat) - L_i(u)) <= [Lemma 8] + "
    N, J, lipschitz = record.loss.shape[1], record.method.J, record.descent.lipschitz
    of_gradients = lipschitz**2 * N * J / 2 * np.cumsum(np.ones_like(record.rates), axis=0)  # eta_e is eta_t
    printed = record.printed_of_weights + record.start + of_gradients
    yield _named_theorem(
        record,
        ("Lemma 1", "kernel", record.left_side(record.best), targets - record.best[-1]),
        (start + "|u|^2 / 2 + sum_t eta_t^2 L^2 N J / (2 eta_e^2)", printed),
        (f"E {start}[Lemma 7]", record.of_weights + record.of_descent),
    )


def _of_nodes(record: GraphOmklRecord, nodes: NodeRecords) -> Iterator[Theorem]:
    """Bounds of the prediction of OMKL-SFG and SFG-R against every node, and against the best kernel."""
    of_kernels, of_nodes, targets = record.weighted_sum(record.loss), record.weighted_sum(nodes.loss), record.at_zero
    # Lemma 10: against every node's prediction. Unless xi = eta, the right-hand side of (106) differs from that of its
    # proof, (120). The printed form is (120).
    start = "sum_t eta_t (E_t L(f_hat) - L(node i)) <= ln N + "
    yield _named_theorem(
        record,
        ("Lemma 10", "node", record.left_side(of_nodes), targets - of_nodes[-1]),
        (start + "sum_t eta_t (xi + eta_t N / 2 - eta_t xi / 2)", nodes.printed_of_draw(record)),
        (
            f"E {start}E sum_t [eta_t^2 sum_k u_k b_k L(node k)^2 / (2 p_k)"
            " + eta_t sum_k (p_k - b_k u_k) L(node k) - eta_t (1 - b_i) L(node i)], b_k the mean of its estimate / L",
            nodes.of_draw(record),
        ),
    )
    # Lemma 11, eq. (121): the prediction of every node, against its own kernel. The telescoping sum (125) needs the
    # same kernels at node i in every round. OMKL-SFG-R adds edges and removes them; each change multiplies the sum of
    # the node's weights, and the corrected form adds the logarithms.
    changes = isinstance(record.method, OmklSfgR)
    start = "sum_t eta_t (L(node i) - L_i) <= ln |N_i| + "
    yield _named_theorem(
        record,
        ("Lemma 11", "node", of_nodes - of_kernels, targets - of_kernels[-1]),
        (start + "(1/2) sum_t eta_t^2 sum_j w_ij / q_j, j in N_i", nodes.printed_of_kernels(record)),
        (
            f"E {start}E sum_t [ln(change of sum_j w_j by new edges)"
            " + (eta_t^2 / 2) sum_j w_ij (a_j / q_j) L_j^2 + eta_t sum_j w_ij (1 - a_j) L_j - eta_t (1 - a_i) L_i]",
            nodes.of_kernels(record),
        ),
        Assumption("a graph that does not change", "OMKL-SFG-R changes the graph" if changes else ""),
    )
    # Theorems 5 and 6 compare with the ridge fit in the features of the best kernel j. They allow any node with an edge
    # to j. Here the node is j itself, because the best of these nodes depends on the draws. A comparator in the
    # features needs no eps and no C: |u|^2 replaces (1 + eps) C^2.
    j = [int(record.best[-1].argmin())]
    start, parts = "sum_t eta_t (E_t L(f_hat) - L_j(u)) <= ", "[Lemma 10] + [Lemma 11] + [Lemma 7], of kernel j"
    corrected = (nodes.of_draw(record) + nodes.of_kernels(record) + record.of_descent)[:, j]
    if changes:
        # Theorem 6, eq. (48). Its proof has >= instead of <= in (137), and uses Lemma 11 although the graph changes.
        # beta is the smallest q of the run, or 1 / N if that is smaller; the beta in fkl varies.
        sums = "2 ln N + |u|^2 / 2 + sum_t eta_t (xi + (eta_t / 2) (L^2 + N beta + 1) / beta - eta_t xi / 2)"
        N, eta, lipschitz = record.loss.shape[1], record.rates, record.descent.lipschitz
        beta = min(float(record.q.min()), 1 / N)
        of_rounds = eta + eta / 2 * (lipschitz**2 + N * beta + 1) / beta - eta**2 / 2
        printed = 2 * np.log(N) + record.start[j] + record.weighted_sum(of_rounds)
    else:  # Theorem 5, eq. (40)
        of_kernel = nodes.printed_of_kernels(record) + record.printed_of_descent
        sums, printed = parts, nodes.printed_of_draw(record) + of_kernel[:, j]
    left, trivial = record.left_side(record.best)[:, j], targets - record.best[-1, j]
    yield _named_theorem(
        record,
        ("Theorem 6" if changes else "Theorem 5", "the learner", left, trivial),
        (f"{start}{sums}, without its terms in eps", printed),
        (f"E {start}{parts}", corrected),
    )


def _named_theorem(
    record: GraphOmklRecord,
    what: tuple[str, str, Array, Array],
    printed: tuple[str, Array],
    corrected: tuple[str, Array],
    *on_printed: Assumption,
) -> Theorem:
    """A theorem from its name, claims, left side and trivial bound, and each form's statement and right side."""
    name, claims, left, trivial = what
    forms = (
        Form("printed", printed[0], EXPECTED, printed[1], (*record.on_printed, *on_printed)),
        Form("corrected", corrected[0], EXPECTED, corrected[1]),
    )
    return Theorem(PAPER, name, claims, left, forms, trivial)


def ratio_or_zero(a: Array, q: Array) -> Array:
    """Return a / q, and 0 where a is 0."""
    with np.errstate(divide="ignore"):
        return np.divide(a, q, out=np.zeros_like(a), where=a > 0)


def of_bipartite_graph(method: OmklGf, after: Any, log_w: Array, eta: float, t: int) -> SelectedKernels:
    """Eqs. (18), (19) and (21) in round t, given the round's graph, and log w (N,) before the round."""
    pi, A = after.pi[0], after.A[0]
    u = (A * np.exp(log_w - log_w[A.any(axis=0)].max())).sum(axis=1)
    p = (1 - eta) * u / u.sum() + eta / len(u)
    frozen = t >= method.exploring and method.divide_by == "observed"
    q = p @ A if frozen else p @ (1 - (1 - pi) ** method.M)
    return SelectedKernels(p, p, np.maximum(q, method.q_floor), A, softmax(np.where(A, log_w, -np.inf)))


def of_similarity_graph(method: Any, after: Any, log_w: Array, log_u: Array, eta: float, t: int) -> SelectedKernels:
    """Eqs. (33), (36), (37) and (46) in round t, given log w and log u (N,) before the round."""
    # The graph after the round, and the probabilities of eq. (33)
    A, D = (after.refined[0], after.good[0]) if isinstance(method, OmklSfgR) else (after.A, after.D)
    p = drawn = (1 - eta) * softmax(log_u) + eta * D / D.sum()
    # After exploring, a node may be taken for certain
    if t >= method.exploring and method.settle != "never":
        drawn = np.eye(len(D))[log_u.argmax() if method.settle == "best" else 0]
        p = drawn if method.divide_by == "observed" else p
    elif method.draw == "next":
        drawn = np.append(0.0, p[:-1])
        drawn[-1] += p[-1]
    q = np.maximum(p @ A, method.q_floor)
    return SelectedKernels(drawn, np.maximum(p, method.p_floor), q, A, softmax(np.where(A, log_w, -np.inf)))


def record_of(method: Any, world: World) -> GraphOmklRecord:
    """Run one replicate, and keep the values of each round that the theorems need."""
    # Sums and lists, filled round by round
    rounds, N, lam = world.problem.rounds, world.dictionary.N, method.lam
    rates, descent = method.rates(slice(0, rounds)), DescentSums.before_first_round(rounds, N)
    of_kernels, of_nodes, last_A = [], [], np.eye(N)
    for t, before, _, after in rounds_of(method.round_by_round(), world):
        eta, (x, y, _) = float(rates[t]), world.problem.round(t)
        theta, log_w = before.theta.astype(np.float64), before.log_w[0]
        # The nodes' probabilities, by the method
        if isinstance(method, OmklGf):
            chosen = of_bipartite_graph(method, after, log_w, eta, t)
        else:
            chosen = of_similarity_graph(method, after, log_w, before.log_u[0], eta, t)
        # Losses of all kernels and nodes before the round
        f, norms = world.bank.predict(x, theta)[0, 0], (theta**2).sum(axis=-1)[0]
        loss = world.problem.loss.value(f, y) + lam * norms
        of_node = world.problem.loss.value(chosen.w @ f, y) + lam * chosen.w @ norms
        q = chosen.q
        # a_i is the probability that kernel i is observed, over q_i; where it is 1, the estimate is unbiased
        a = ratio_or_zero(chosen.drawn @ chosen.A, q)
        odds = np.divide(q, a, out=np.full(N, np.inf), where=a > 0)  # E|G|^2 = |g|^2 / odds
        descent.enter(t, world, theta, loss[None], odds[None], eta, lam)
        of_kernels.append((loss, a, q, softmax(log_w), chosen.drawn @ chosen.w, [chosen.drawn @ of_node]))
        # What the graph-aided forms need in addition
        if not isinstance(method, OmklGf):
            edges = log_sums(log_w, chosen.A) - log_sums(log_w, last_A)
            b = ratio_or_zero(chosen.drawn, chosen.divisor)
            inside = (
                ratio_or_zero(chosen.w, q).sum(axis=1),
                chosen.w @ (ratio_or_zero(a, q) * loss**2),
                chosen.w @ ((1 - a) * loss),
            )
            of_nodes.append((of_node, b, chosen.divisor, softmax(before.log_u[0]), chosen.drawn, *inside, edges))
            last_A = chosen.A.astype(np.float64)
    # The best fit, and the loss of predicting 0
    u, best = best_in_features(world, rates, lam)
    targets = world.problem.y[:, 0]
    at_zero = float((rates * world.problem.loss.value(np.zeros_like(targets), targets)).sum())
    values = map(np.array, zip(*of_kernels, strict=True))
    nodes = NodeRecords(*map(np.array, zip(*of_nodes, strict=True))) if of_nodes else None
    return GraphOmklRecord(method, rates[:, None], descent, u[0], best, at_zero, nodes, *values)


def log_sums(log_w: Array, A: Array) -> NDArray[np.float64]:
    """Logarithm of the sum of w over the kernels of each node, (N,)."""
    told: NDArray[np.float64] = np.logaddexp.reduce(np.where(A, log_w, -np.inf), axis=1)
    return told
