"""How far the expected impurity is above the expectation of the impurity, against the number of rows.

python benchmarks/sampled_impurity.py
"""

from __future__ import annotations

import numpy as np

from softwood.measures import sampled_impurity


def sample(n: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """A logistic assignment of normal rows to two parts, and targets that go with x."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    noisy = x + 0.5 * rng.normal(size=n)
    p = 1 / (1 + np.exp(-2 * x))
    return np.stack([1 - p, p], axis=1), {"gini": noisy > 0, "entropy": noisy > 0, "variance": noisy}


def main() -> None:
    print(f"{'rows':>6} {'impurity':>9} {'expected':>9} {'difference':>11} {'error':>8} {'n * difference':>15}")
    for n in (50, 200, 800, 3200, 12800):
        P, targets = sample(n)
        for name, y in targets.items():
            found = sampled_impurity(P, y, 2000, name, random_state=0)
            difference, error = found.difference, found.standard_error
            print(f"{n:6} {name:>9} {found.expected:9.4f} {difference:11.2e} {error:8.0e} {n * difference:15.3f}")


if __name__ == "__main__":
    main()
