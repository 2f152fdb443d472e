"""The sparse Gaussian process: kernels, linear algebra, posterior."""
