"""`python -m plurigp.cli`."""

from plurigp.cli import main

if __name__ == "__main__":
    main()
