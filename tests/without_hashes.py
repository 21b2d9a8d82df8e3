"""Published data sets that take small stand-ins for their files, and a web server on this machine for these."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from scipy.io import savemat

from fkl.data import registry
from fkl.data.store import Store
from fkl.data.table_set import TableSet


def small(name: str, table: dict[str, Any] | None = None, **keys: Any) -> TableSet:
    """A data set whose files have no hash, with these keys, and these fields of its table, in place of its YAML's."""
    node = registry.dataset_node(name) | keys
    files = [{key: file[key] for key in file if key not in ("sha256", "size")} for file in node["table"]["files"]]
    return table_set(node | {"table": node["table"] | {"files": files} | (table or {})})


def table_set(node: dict[str, Any]) -> TableSet:
    """The data set of a node that is known to be right, such as those that fkl ships."""
    values = {key: value for key, value in node.items() if key != "_target_"}
    return TableSet.with_keys(values)(**values)


def put(folder: Path, name: str, contents: Sequence[str | bytes]) -> Store:
    """Write stand-ins for the first files of a data set; the store that has them."""
    for file, content in zip(registry.named_dataset(name).data_files, contents, strict=False):
        (folder / file.name).write_bytes(content.encode() if isinstance(content, str) else content)
    return Store(folder, offline=True)


def mat(**variables: Any) -> bytes:
    """A MATLAB file."""
    buffer = io.BytesIO()
    savemat(buffer, variables, do_compression=True)
    return buffer.getvalue()


@dataclass
class Site:
    """Pages by name; `cut` sends the whole length as header but only half the body."""

    pages: dict[str, bytes]
    address: str = ""
    cut: bool = False
    requests: list[str] = field(default_factory=list)


@contextmanager
def served(**pages: bytes) -> Iterator[Site]:
    """A web server on loopback."""
    site = Site(pages)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.requests.append(self.path)
            body = site.pages.get(self.path.rpartition("/")[2])
            if body is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if site.cut else body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        site.address = f"http://127.0.0.1:{server.server_address[1]}"
        yield site
        server.shutdown()
