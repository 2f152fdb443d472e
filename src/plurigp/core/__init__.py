"""What every room shares and nothing heavy: errors, files, text, array types, threads."""
