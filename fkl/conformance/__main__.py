"""`python -m fkl.conformance`: a separate module, because each party's process has a `__main__` module too."""

from fkl.conformance.command import main

if __name__ == "__main__":
    main()
