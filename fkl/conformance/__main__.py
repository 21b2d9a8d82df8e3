"""`python -m fkl.conformance`: a module of its own, so that parties in processes do not take it for theirs."""

from fkl.conformance.promises import main

if __name__ == "__main__":
    main()
