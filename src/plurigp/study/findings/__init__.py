"""What is read off finished fits: clusters, consensus, nulls, contrasts, survival."""
