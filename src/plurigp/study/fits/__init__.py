"""The fits of a study: settings, tasks, workers, what is kept on disk."""
