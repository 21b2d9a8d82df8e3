"""The first lines of the `fkl` command: an interruption during the imports also prints one line."""

import sys


def main() -> None:
    """Entry point."""
    try:
        from fkl import cli
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        sys.exit(130)
    cli.main()


if __name__ == "__main__":
    main()
