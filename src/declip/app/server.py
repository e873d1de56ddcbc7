"""The page served, on the loopback address only."""

from __future__ import annotations

import logging
import signal
import socket
import threading
import webbrowser

import uvicorn
from starlette.applications import Starlette

from declip.app.jobs import Jobs
from declip.app.pages import make_app

__all__ = ["serve"]

HOST = "127.0.0.1"
_MOST_CONNECTIONS = 64


def serve(port: int = 8642, *, open_browser: bool = True, max_size: int = 100_000_000) -> None:
    """Serve the page until interrupted.

    Parameters
    ----------
    port : int
        Port on the loopback address; 0 for any that is free.
    open_browser : bool
        Whether to open the page.
    max_size : int
        Largest upload, in bytes.
    """
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError as error:
            raise ValueError(
                f"port {port} cannot be used: {error.strerror}; try --port 0"
            ) from error
        listener.listen(_MOST_CONNECTIONS)  # who asks before the page is up waits for its answer
        port = listener.getsockname()[1]
        address = f"http://{HOST}:{port}/"
        print(f"declip is at {address} (Ctrl-C ends it; no data leaves this computer)", flush=True)
        if open_browser:
            threading.Timer(0.5, webbrowser.open, [address]).start()
        app = make_app(max_size)
        _until_asked_to_end(_Server(_config(app), app.state.jobs), listener)


class _Server(uvicorn.Server):
    """A server that ends at once, with all that is being done: nobody waits for the answers."""

    def __init__(self, config: uvicorn.Config, jobs: Jobs) -> None:
        super().__init__(config)
        self._jobs = jobs

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # of answers cut off
        self._jobs.close()
        await super().shutdown(sockets)


def _config(app: Starlette) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_level="warning",
        server_header=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=0,
    )


def _until_asked_to_end(server: uvicorn.Server, listener: socket.socket) -> None:
    """Serve; Ctrl-C and SIGTERM are the ways to end it, and no errors."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)
