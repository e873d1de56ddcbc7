"""The page served, on the loopback address only."""

from __future__ import annotations

import socket
import threading
import webbrowser

import uvicorn

from declip.app.pages import make_app

__all__ = ["serve"]

HOST = "127.0.0.1"


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
        port = listener.getsockname()[1]
        address = f"http://{HOST}:{port}/"
        print(f"declip is at {address} (Ctrl-C ends it; no data leaves this computer)", flush=True)
        if open_browser:
            threading.Timer(0.5, webbrowser.open, [address]).start()
        config = uvicorn.Config(make_app(max_size), log_level="warning", server_header=False)
        uvicorn.Server(config).run(sockets=[listener])
