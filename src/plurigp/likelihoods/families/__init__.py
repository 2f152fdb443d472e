"""One small file per family."""
