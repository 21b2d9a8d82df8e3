"""A web server on loopback, and zip archives in memory."""

import io
import zipfile
from collections.abc import Callable, Iterator

import pytest
from without_hashes import Site, served


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with served() as site:
        yield site


@pytest.fixture
def zipped() -> Callable[[dict[str, bytes]], bytes]:
    def make(members: dict[str, bytes]) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        return buffer.getvalue()

    return make
