"""`python -m fkl.papers.frontier search [DATASET ...]`: tune what has not been tuned yet."""

import sys

from fkl.basics.errors import FklError, print_refusal
from fkl.papers.frontier.search import main

if __name__ == "__main__":
    if sys.argv[1:2] != ["search"]:
        sys.exit("usage: python -m fkl.papers.frontier search [DATASET ...]")
    try:
        main(sys.argv[2:])
    except FklError as error:
        sys.exit(print_refusal(error))
