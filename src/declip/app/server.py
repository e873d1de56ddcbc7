"""The page served, on the loopback address only."""

from __future__ import annotations

import signal
import socket
import threading
import webbrowser

import uvicorn

from declip.app.pages import make_app

__all__ = ["serve"]

HOST = "127.0.0.1"
_MOST_CONNECTIONS = 64
_PATIENCE = 1  # seconds for answers that are under way at the end


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
        _until_asked_to_end(uvicorn.Server(_config(max_size)), listener)


def _config(max_size: int) -> uvicorn.Config:
    return uvicorn.Config(
        make_app(max_size),
        log_level="warning",
        server_header=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=_PATIENCE,
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
