"""`python -m plurigp`."""

from plurigp.cli import main

if __name__ == "__main__":
    main()
