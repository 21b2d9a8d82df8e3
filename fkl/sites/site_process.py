"""`fkl flower site`: a process that joins a SuperLink as a site and answers one message after another.

A SuperNode of Flower polls for messages every 3 seconds and starts a Python process for each. This process keeps the
connection, polls many times a second, and runs no code that the server sends: it reads a project's configuration, and
runs the functions of the fkl that is installed here. The connection is that of Flower's SuperNode.
"""

import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_ssh_private_key
from flwr.app import Context, Message, RecordDict
from flwr.app.message import remove_content_from_message
from flwr.common.config import get_fused_config_from_fab
from flwr.proto.fleet_pb2 import DeactivateNodeRequest
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, get_object_tree, no_object_id_recompute
from flwr.supercore.inflatable.inflatable_utils import (
    ObjectPullError,
    ObjectPushError,
    pull_and_inflate_object_from_tree,
)
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor
from flwr.supercore.run import RunNotRunningException
from flwr.supercore.task_identity import TaskIdentity
from flwr.supernode.fleet_http_client import FleetHttpClient
from flwr.supernode.fleet_http_connection import http_request_response
from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor

from fkl.basics.errors import FklError, require
from fkl.basics.files import write_text
from fkl.sites.site import client_app

Keys = tuple[ec.EllipticCurvePrivateKey, ec.EllipticCurvePublicKey]
PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.5
"""Seconds between two polls for messages, at first and at most; in between, a tenth of the time waited so far."""
PULL_S = 10.0
"""Maximum seconds between the arrival of a message's head and of its content."""
LOST = (httpx.HTTPError, ObjectPullError, ObjectPushError, RuntimeError, ValueError, KeyError, OSError)
"""Errors for a message that cannot be fetched or answered, because its run or the server has ended."""


def join_superlink(superlink: str, number: int, rows: Path, certificates: Path | None, key: Path | None) -> None:
    """Answer the messages of a SuperLink until the process is stopped.

    Parameters
    ----------
    superlink : str
        HOST:PORT of the server.
    number : int
        Number of the site, from 0.
    rows : Path
        File of the site's rows.
    certificates : Path or None
        Certificates that must have signed the server's certificate; None for a connection without TLS.
    key : Path or None
        The private key by which the server recognises the site; None if the server admits all sites.

    Raises
    ------
    fkl.basics.errors.FklError
        For a key or certificates that cannot be read.
    """
    # Refuse wrong arguments before connecting
    require(rows.is_file(), "rows", rows, "the file of the site's rows")
    tls = certificates is not None
    require(tls or key is None, "key", key, "given with --certificates, because Flower checks keys only over TLS")
    trusted, keys = None if certificates is None else _read_file(certificates), None if key is None else _read_keys(key)
    # A node with a key must leave before it can join again
    number_of_node = rows.with_name(f"{rows.stem}.site{number}.node")
    if keys is not None and number_of_node.exists():
        with suppress(ValueError):  # a file without a number is replaced
            _end_membership(int(number_of_node.read_bytes()), superlink, trusted, keys)
    # Join, remember the node's number, and answer until stopped
    with http_request_response(superlink, not tls, trusted, keys) as (node, *calls):
        write_text(number_of_node, f"{node}\n")
        print(f"site {number} has joined {superlink} as node {node}", flush=True)
        node_config = {"site": number, "path": str(rows), "session": secrets.token_hex(8)}
        with suppress(KeyboardInterrupt):
            _answer_messages(node, node_config, *calls)


def _end_membership(node: int, superlink: str, trusted: bytes | None, keys: Keys) -> None:
    """Sign off a killed process of this site; otherwise the SuperLink would wait a minute for it and admit no other."""
    signed = [RuntimeVersionHttpInterceptor(component_name="SuperNode"), NodeAuthHttpInterceptor(*keys)]
    client = FleetHttpClient.from_server_address(superlink, trusted is None, trusted, interceptors=signed)
    with client, suppress(httpx.HTTPError):
        client.DeactivateNode(DeactivateNodeRequest(node_id=node))


def _answer_messages(
    node: int,
    own: dict[str, Any],
    receive: Callable[..., Any],
    send: Callable[..., Any],
    get_run: Callable[..., Any],
    get_fab: Callable[..., Any],
    pull_object: Callable[..., bytes],
    push_object: Callable[..., None],
    confirm: Callable[..., None],
) -> None:
    """Receive one message after another, and send the answers."""
    app, contexts, last = client_app(), dict[int, Context](), time.monotonic()
    while True:
        # Wait for a message, less often if none has come for long
        try:
            if (received := receive()) is None:
                time.sleep(min(max(PAUSE_S, (time.monotonic() - last) / 10), LONGEST_PAUSE_S))
                continue
            run_id, tree = int(received[0].metadata.run_id), received[1]
            # A new run: its project and its settings
            if run_id not in contexts:
                run = get_run(run_id)
                given = get_fused_config_from_fab(get_fab(run.fab_hash, run_id).content, run)
                contexts = {run_id: Context(run_id, node, own, RecordDict(), given)}

            def pull(name: str, run_id: int = run_id) -> bytes:
                return pull_object(run_id, name)

            def confirmed(name: str, run_id: int = run_id) -> None:
                confirm(run_id, name)

            # Receive the message in pieces, and check them
            message = pull_and_inflate_object_from_tree(
                tree, pull, confirmed, return_type=Message, initial_backoff=PAUSE_S, max_time=PULL_S
            )
            message.metadata.__dict__["_message_id"] = tree.object_id  # as Flower sets it; the bytes lack it
            TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = run_id, node, 0
            # The site's own code answers
            begun = time.perf_counter()
            answer = app(message, contexts[run_id])
            answer.metadata.__dict__["_message_id"] = answer.object_id
            # Send the answer's head, then the pieces that the server lacks
            with no_object_id_recompute():
                contents = {name: one.deflate() for name, one in get_all_nested_objects(answer).items()}
                header = remove_content_from_message(answer)
                wanted, session = send(header, get_object_tree(answer), time.perf_counter() - begun)
            for name in contents.keys() & wanted:
                push_object(run_id, session, name, contents[name])
            last = time.monotonic()
        except (*LOST, RunNotRunningException) as error:
            print(f"a message is lost: {error or type(error).__name__}", flush=True)
            time.sleep(PAUSE_S)


def _read_keys(file: Path) -> Keys:
    """A site's private and public key."""
    try:
        key = load_ssh_private_key(_read_file(file), None)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise FklError(f"{file}: not an OpenSSH private key ({error})") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise FklError(f"{file}: its key is not an elliptic-curve key; make one with ssh-keygen -t ecdsa -b 384")
    return key, key.public_key()


def _read_file(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise FklError(f"{file}: cannot be read ({error.strerror})") from None
