"""Sites for tests: a grid that plays them in this process; files and simulation are those of the script's."""

import importlib.util
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.supercore.task_identity import TaskIdentity

FILE = Path(__file__).parents[2] / "scripts" / "flower_sites.py"
spec = importlib.util.spec_from_file_location("flower_sites", FILE)
assert spec is not None and spec.loader is not None
script = importlib.util.module_from_spec(spec)
spec.loader.exec_module(script)

RUN = 7
"""Number of the run, in this process."""


class InProcess:
    """A grid whose nodes are played here, each message after the other.

    Parameters
    ----------
    app : ClientApp
    configuration : dict
        Of the project.
    files : list of Path
        Of node 100, 101, ...; each is site 0, 1, ...
    fails : callable
        Told the node and the message, whether no answer comes.
    """

    def __init__(
        self,
        app: ClientApp,
        configuration: dict[str, Any],
        files: list[Path],
        fails: Callable[[int, Message], bool] = lambda node, message: False,
    ) -> None:
        self.app, self.configuration, self.fails = app, configuration, fails
        self.nodes = {100 + k: self.context(100 + k, k, file) for k, file in enumerate(files)}
        self.answers: dict[str, Message] = {}
        self._number = itertools.count()
        TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = RUN, 1, 1  # as in a process of Flower's

    def context(self, node: int, site: int, file: Path) -> Context:
        """What a node has before the first message."""
        own = {"site": site, "path": str(file)}
        return Context(RUN, node, own, RecordDict(), self.configuration)

    def get_node_ids(self) -> list[int]:
        """Nodes that are there, or were."""
        return list(self.nodes)

    def push_messages(self, messages: list[Message]) -> list[str]:
        """Play the nodes' parts at once."""
        sent = []
        for message in messages:
            name, node = f"m{next(self._number)}", message.metadata.dst_node_id
            message.metadata.__dict__["_message_id"] = name
            sent.append(name)
            if not self.fails(node, message):
                self.answers[name] = self.app(message, self.nodes[node])
        return sent

    def pull_messages(self, names: list[str]) -> list[Message]:
        """Answers that are there."""
        return [self.answers.pop(name) for name in names if name in self.answers]
