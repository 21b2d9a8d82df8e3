"""Eq. (27) of Ghari and Shen (2023) with as many digits as one likes: what float64 sums of it are measured by."""

from collections.abc import Sequence
from decimal import Decimal, localcontext


def pi() -> Decimal:
    """The mean of Gauss and Legendre, to the digits of the context."""
    a, b, t, p = Decimal(1), 1 / Decimal(2).sqrt(), Decimal(1) / 4, Decimal(1)
    for _ in range(12):
        a, b, t, p = (a + b) / 2, (a * b).sqrt(), t - p * ((a - b) / 2) ** 2, 2 * p
    return (a + b) ** 2 / (4 * t)


def erfcx(x: Decimal, digits: int, root: Decimal) -> Decimal:
    """exp(x^2) erfc(x): its series, whose terms are all positive, up to 6, then its continued fraction.

    `root` is that of pi.
    """
    if x < 6:
        term = total = x
        square, least, odd = 2 * x * x, Decimal(10) ** -(digits + 20), 1
        while term > least:
            odd += 2
            term = term * square / odd
            total += term
        return (x * x).exp() - 2 * total / root
    below = x
    for k in range(20 + int((0.9 * digits / float(x)) ** 2), 0, -1):
        below = x + k / (2 * below)
    return 1 / (root * below)


def divergences(families: Sequence[str], scales: Sequence[float], dimension: int, digits: int) -> list[list[Decimal]]:
    """Delta (N, N) over R^d: A^d + B^d - 2 C^d from integrals over the line."""
    with localcontext() as context:
        context.prec = digits + 40  # the series of erfcx loses up to 16
        s = [Decimal(scale) for scale in scales]
        circle, N = 2 * pi(), range(len(s))
        root = (circle / 2).sqrt()

        def inner(i: int, j: int) -> Decimal:
            if families[i] == families[j] == "rbf":
                return (circle / (s[i] ** 2 + s[j] ** 2)).sqrt()
            if families[i] == families[j]:
                return 2 / (s[i] + s[j])
            rbf, laplacian = (s[i], s[j]) if families[i] == "rbf" else (s[j], s[i])
            return circle.sqrt() / rbf * erfcx(laplacian / (Decimal(2).sqrt() * rbf), digits, root)

        power = [[inner(i, j) ** dimension if j <= i else Decimal(0) for j in N] for i in N]
        return [[power[i][i] + power[j][j] - 2 * power[max(i, j)][min(i, j)] for j in N] for i in N]
