"""`fkl flower site`: one process that joins a SuperLink as a site and answers message after message.

A SuperNode of Flower looks for messages every 3 seconds and starts a Python process for each. This process keeps the
connection, looks many times a second, and runs no code that the server sends: it reads the configuration of a project,
and runs the functions of the fkl that is installed here. The connection is Flower's own, that of its SuperNode.
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
"""Between two looks for messages: at first, and at most; a tenth of the time waited so far in between."""
PULL_S = 10.0
"""How long the content of a message may come after its head."""
LOST = (httpx.HTTPError, ObjectPullError, ObjectPushError, RuntimeError, ValueError, KeyError, OSError)
"""Errors for a message that cannot be fetched or answered: its run has ended, or the server is gone."""


def join(superlink: str, number: int, rows: Path, certificates: Path | None, key: Path | None) -> None:
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
        Certificates that must have signed the server's; None for a connection without TLS.
    key : Path or None
        The private key by which the server knows the site; None if the server admits all.

    Raises
    ------
    fkl.basics.errors.FklError
        For a key or certificates that cannot be read.
    """
    require(rows.is_file(), "rows", rows, "the file of the site's rows")
    tls = certificates is not None
    require(tls or key is None, "key", key, "given with --certificates: Flower checks keys over TLS alone")
    trusted, keys = None if certificates is None else _read(certificates), None if key is None else _keys(key)
    number_of_node = rows.with_name(f"{rows.stem}.site{number}.node")
    if keys is not None and number_of_node.exists():
        with suppress(ValueError):  # a file that holds no number is written again
            _end_membership(int(number_of_node.read_bytes()), superlink, trusted, keys)
    with http_request_response(superlink, not tls, trusted, keys) as (node, *calls):
        write_text(number_of_node, f"{node}\n")
        print(f"site {number} has joined {superlink} as node {node}", flush=True)
        own = {"site": number, "path": str(rows), "session": secrets.token_hex(8)}
        with suppress(KeyboardInterrupt):
            _answer_messages(node, own, *calls)


def _end_membership(node: int, superlink: str, trusted: bytes | None, keys: Keys) -> None:
    """Sign off a process of this site that was killed: the SuperLink would wait a minute for it, and admit no other."""
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
    """Take one message after another, and send its answer."""
    app, contexts, last = client_app(), dict[int, Context](), time.monotonic()
    while True:
        try:
            if (received := receive()) is None:
                time.sleep(min(max(PAUSE_S, (time.monotonic() - last) / 10), LONGEST_PAUSE_S))
                continue
            run_id, tree = int(received[0].metadata.run_id), received[1]
            if run_id not in contexts:
                run = get_run(run_id)
                given = get_fused_config_from_fab(get_fab(run.fab_hash, run_id).content, run)
                contexts = {run_id: Context(run_id, node, own, RecordDict(), given)}

            def pull(name: str, run_id: int = run_id) -> bytes:
                return pull_object(run_id, name)

            def confirmed(name: str, run_id: int = run_id) -> None:
                confirm(run_id, name)

            message = pull_and_inflate_object_from_tree(
                tree, pull, confirmed, return_type=Message, initial_backoff=PAUSE_S, max_time=PULL_S
            )
            message.metadata.__dict__["_message_id"] = tree.object_id  # as Flower sets it: it is not in the bytes
            TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = run_id, node, 0
            begun = time.perf_counter()
            answer = app(message, contexts[run_id])
            answer.metadata.__dict__["_message_id"] = answer.object_id
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


def _keys(file: Path) -> Keys:
    """A site's private and public key."""
    try:
        key = load_ssh_private_key(_read(file), None)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise FklError(f"{file}: holds no private key of OpenSSH ({error})") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise FklError(f"{file}: its key is not of an elliptic curve; make one by ssh-keygen -t ecdsa -b 384")
    return key, key.public_key()


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise FklError(f"{file}: cannot be read ({error.strerror})") from None
