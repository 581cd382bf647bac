"""A model of one's own, trained by the expected impurity with torch's autograd: p(part | x) is a small network.

Any module whose softmax has a column per part will do; here four parts of a ring around a disc.
"""

from __future__ import annotations

import torch

from softwood.measures import assignment_impurity, expected_impurity, gini


def ring(n: int = 600, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """A disc, and a ring around it."""
    random = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % 2
    radius = torch.where(y == 1, 2.0, 0.7) + 0.2 * torch.randn(n, generator=random)
    angle = 2 * torch.pi * torch.rand(n, generator=random)
    return torch.stack([radius * torch.cos(angle), radius * torch.sin(angle)], dim=1), y


def train(X: torch.Tensor, y: torch.Tensor, n_steps: int = 200) -> tuple[torch.nn.Module, list[float]]:
    """Adam on the value itself: autograd runs through it."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4), torch.nn.Softmax(dim=1))
    optimizer, history = torch.optim.Adam(model.parameters(), lr=0.03), []
    for _ in range(n_steps):
        value = expected_impurity(model(X), y).value
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        history.append(value.item())
    return model, history


def main() -> None:
    X, y = ring()
    model, history = train(X, y)
    hard = model(X).argmax(dim=1)
    print(f"Gini of all rows {gini(y):.3f}, expected at the start {history[0]:.3f}, at the end {history[-1]:.3f}")
    print(f"Gini of the four hard parts {assignment_impurity(hard, y):.3f}")


if __name__ == "__main__":
    main()
