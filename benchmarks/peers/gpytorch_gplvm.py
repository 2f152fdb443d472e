"""GPyTorch's BayesianGPLVM on Gaussian columns: a Z per column, as its documentation has it, or one Z for all."""

from collections.abc import Callable

import numpy as np
import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ZeroMean
from gpytorch.mlls import VariationalELBO
from gpytorch.models.gplvm.bayesian_gplvm import BayesianGPLVM
from gpytorch.models.gplvm.latent_variable import VariationalLatentVariable
from gpytorch.priors import NormalPrior
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy

from plurigp.inference.batches import batches


class GPLVM(BayesianGPLVM):
    """Free q(x_n), ARD-RBF, q(u_d) with a full covariance for every column; Z is [D M Q], or [M Q] when shared."""

    def __init__(self, Y: torch.Tensor, n_components: int, n_inducing: int, shared: bool) -> None:
        N, D = Y.shape
        Z = torch.randn(n_inducing, n_components) if shared else torch.randn(D, n_inducing, n_components)
        q_u = CholeskyVariationalDistribution(n_inducing, batch_shape=torch.Size([D]))
        prior = NormalPrior(torch.zeros(N, n_components), torch.ones(N, n_components))
        x = VariationalLatentVariable(N, D, n_components, principal_components(Y, n_components), prior)
        super().__init__(x, VariationalStrategy(self, Z, q_u, learn_inducing_locations=True))
        self.mean_module = ZeroMean()
        self.covar_module = ScaleKernel(RBFKernel(ard_num_dims=n_components))

    def forward(self, x: torch.Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


def principal_components(Y: torch.Tensor, n_components: int) -> torch.Tensor:
    """The start of q(x), at unit variance: rows far from every Z would fill the kernel with slow denormal numbers."""
    U, _, _ = torch.pca_lowrank(Y, q=n_components)
    return U * len(Y) ** 0.5


def make_epoch(
    values: np.ndarray, n_components: int, n_inducing: int, batch_size: int, shared: bool
) -> Callable[[], float]:
    """A function that trains for one pass over plurigp's batches with Adam on everything, and returns the bound."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    Y = torch.as_tensor(values, dtype=torch.float32)
    model = GPLVM(Y, n_components, n_inducing, shared)
    likelihood = GaussianLikelihood(batch_shape=torch.Size([Y.shape[1]]))
    objective = VariationalELBO(likelihood, model, num_data=len(Y))
    adam = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.01)
    model.train()
    likelihood.train()

    def epoch() -> float:
        total = 0.0
        for numbers, real in zip(*batches(len(Y), batch_size, rng), strict=True):
            rows = torch.as_tensor(numbers[real], dtype=torch.long)
            adam.zero_grad()
            x = model.sample_latent_variable()  # all rows are drawn and the batch is picked, as in the documentation
            loss = -objective(model(x[rows]), Y[rows].T).sum()
            loss.backward()
            adam.step()
            total -= loss.item()
        return total

    return epoch
