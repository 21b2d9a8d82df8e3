"""Theorem 1 of POF-MKL: R_k <= ln N / eta_k + eta_k T / 2 where all losses lie in [0, 1]."""

from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from literal.common import Array
from literal.worlds import Size, make_problem, run

from fkl.algorithms.base import mixture_norm
from fkl.algorithms.federated.pof_mkl import PofMkl
from fkl.data.problem import Problem
from fkl.kernels import Dictionary


@dataclass(frozen=True)
class Regrets:
    """Each client's regret, eq. (11), of shape (R, K); the theorem's bound on it; whether it must hold."""

    regret: Array
    bound: float
    applies: bool


def play(algorithm: PofMkl, problem: Problem, dictionary: Dictionary) -> Regrets:
    """Run POF-MKL and add up L(f_hat) and the kernels' losses."""
    trace = run(algorithm, problem, dictionary)
    assert trace.loss is not None
    ensemble = (trace.y_hat - problem.y) ** 2 + algorithm.lam * trace.squared_norm
    rate = abs(algorithm.eta_k or 0)
    return Regrets(
        regret=ensemble.sum(axis=1) - trace.loss.sum(axis=1).min(axis=-1),
        bound=log(dictionary.N) / rate + rate * problem.rounds / 2,
        applies=bool(trace.loss.max() <= 1 and ensemble.max() <= 1),
    )


def test_theorem_1() -> None:
    """No client's regret exceeds the bound, over random problems and hyper-parameters; nearly all of them qualify."""
    qualified: list[bool] = []

    @settings(max_examples=60)
    @given(
        seed=st.integers(0, 2**32 - 1),
        eta=st.floats(0.01, 0.3),
        eta_k=st.floats(0.05, 4.0),
        lam=st.floats(0, 0.05),
        xi=st.sampled_from([1.0, 0.5]),
        kernels=st.integers(2, 7),
        M=st.integers(1, 2),
    )
    def holds(seed: int, eta: float, eta_k: float, lam: float, xi: float, kernels: int, M: int) -> None:
        size = Size(K=3, N=kernels, T=25, d=3, D=10)
        algorithm = PofMkl(M=M, xi=xi, eta=eta * M / (4 * kernels), eta_k=eta_k, lam=lam)
        problem = make_problem(size, seed)
        problem.y[:] = 0.2 + 0.6 * problem.y  # room for predictions beyond the labels' range
        dictionary = Dictionary(N=kernels, smallest=0.001, largest=10, D=size.D)
        regrets = play(algorithm, problem, dictionary)
        qualified.append(regrets.applies)
        if regrets.applies:
            assert (regrets.regret <= regrets.bound).all()

    holds()
    assert np.mean(qualified) >= 0.9


def adversarial() -> tuple[Problem, Dictionary]:
    """Label 0.6 everywhere: a wide kernel learns it at once, a kernel of width near 0 never does."""
    problem = make_problem(Size(K=3, T=80, d=5), seed=1)
    problem.y[:] = 0.6
    return problem, Dictionary(N=2, smallest=1e-5, largest=100, D=40)


class WrongSign(PofMkl):
    """POF-MKL that rewards losses: eta_k < 0, which the real one refuses."""

    def __post_init__(self) -> None:
        """Refuse nothing."""


def test_theorem_1_is_sharp_enough_to_catch_a_wrong_sign() -> None:
    """Where kernels differ much, weights that grow with the loss break the bound and the right ones keep it."""
    problem, dictionary = adversarial()
    best_rate = sqrt(2 * log(2) / problem.rounds)
    right = play(PofMkl(M=2, eta=0.1, eta_k=best_rate, lam=0), problem, dictionary)
    wrong = play(WrongSign(M=2, eta=0.1, eta_k=-best_rate, lam=0), problem, dictionary)
    assert right.applies
    assert wrong.applies
    assert right.bound == wrong.bound
    assert (right.regret <= right.bound).all()
    assert (wrong.regret > wrong.bound).all()


@given(seed=st.integers(0, 2**32 - 1), N=st.integers(1, 5), D=st.integers(1, 4))
def test_the_norm_of_a_mixture_is_that_of_its_kernel(seed: int, N: int, D: int) -> None:
    """It is of f = sum_i w_i theta_i'z_i in the features sqrt(w_i) z_i of the kernel sum_i w_i kappa_i.

    The norm is that of f's parameters there, no less than the least norm of a function with f's values, the same
    whichever way a kernel numbers its features, and makes L(f) <= sum_i w_i L(f_i).
    """
    random = np.random.default_rng(seed)
    theta, z, w = random.normal(size=(N, D)), random.normal(size=(6, N, D)), random.dirichlet(np.ones(N))
    found = mixture_norm(w[None, None], theta[None])[0, 0]
    features, parameters = (z * np.sqrt(w)[:, None]).reshape(6, -1), (np.sqrt(w)[:, None] * theta).ravel()
    f = np.einsum("jnd,nd->jn", z, theta)
    np.testing.assert_allclose(features @ parameters, f @ w, atol=1e-12)
    np.testing.assert_allclose(found, parameters @ parameters)
    least = np.linalg.lstsq(features, f @ w, rcond=1e-10)[0]
    assert least @ least <= found * (1 + 1e-9)
    renumbered = np.stack([random.permutation(row) for row in theta])
    np.testing.assert_allclose(mixture_norm(w[None, None], renumbered[None])[0, 0], found)
    sizes = (theta**2).sum(axis=1)
    assert ((f @ w) ** 2 + 0.1 * found <= ((f**2 + 0.1 * sizes) @ w) * (1 + 1e-9) + 1e-12).all()
