"""What SecureBoost's parties write to one another."""

from fkl.wire.letters import Letter


class Key(Letter):
    """What it takes to encrypt, and to add what is encrypted; sent once, where the cipher has such a key."""

    kind = "key"
    dtype = "V"


class Statistics(Letter):
    """Encrypted g and h of all samples, (n, 2)."""

    kind = "statistics"
    dtype = "V"


class Sums(Letter):
    """Encrypted sums of g and h over the bins of a party's features, about a node and where each feature's begin."""

    kind = "sums"
    dtype = "V"


class Choice(Letter):
    """Which of the receiver's features, and which of its edges, a node is split at."""

    kind = "split"
    dtype = "i8"


class Left(Letter):
    """Which samples of a node go left, one bit each."""

    kind = "left"
    dtype = "?"
