"""The model and how it is trained: encoder, sparse GP, bound, schedule, training."""
