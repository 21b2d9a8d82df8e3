"""`python -m fkl.conformance`: a separate module, because parties in processes must not mistake it for theirs."""

from fkl.conformance.command import main

if __name__ == "__main__":
    main()
