"""`python -m fkl.papers.frontier search [DATASET ...]`: tune what has not been tuned yet."""

import sys

from fkl.basics.errors import FklError
from fkl.papers.frontier.search import main
from fkl.screen.messages import refuse

if __name__ == "__main__":
    if sys.argv[1:2] != ["search"]:
        sys.exit("usage: python -m fkl.papers.frontier search [DATASET ...]")
    try:
        main(sys.argv[2:])
    except FklError as error:
        sys.exit(refuse(error))
