"""A real browser, and the page served to it."""

import shutil
import socket
import threading
import time

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="session")
def browser():
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def new_tab(browser, colours):
    """Yield a new tab; what the browser complains of is an error."""
    context = browser.new_context(color_scheme=colours, accept_downloads=True)
    context.set_default_timeout(120_000)  # a loaded machine is slow
    page = context.new_page()
    page.complaints = []
    page.on("console", lambda m: m.type == "error" and page.complaints.append(m.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    yield page
    assert page.complaints == []
    context.close()


@pytest.fixture(scope="session")
def address():
    """Serve the page."""
    uvicorn = pytest.importorskip("uvicorn")
    from declip.app import make_app

    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(make_app(200_000), log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    server.should_exit = True
    thread.join(10)
