"""The addresses of the page, and the guards before them.

Other sites that the user visits must not reach it: the Host header must be a loopback name (against
rebinding of names), what a browser says of the origin of a request must be the page itself, and
every change needs the page's own secret, which other sites cannot read.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any

from anyio import to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from declip.app.jobs import Job, Jobs
from declip.app.said import arguments, in_page_words
from declip.app.work import OUTPUTS
from declip.options import Restoring, UsageError

__all__ = ["make_app"]

_HOSTS = ["127.0.0.1", "localhost"]
_POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
    "connect-src 'self'; "
    "frame-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_PLAIN = "default-src 'none'; frame-ancestors 'none'"
_REPORT = (
    "sandbox allow-downloads; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "frame-ancestors 'self'"
)
_SAFE = {
    "Content-Security-Policy": _PLAIN,
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_UPLOAD_SECONDS = 120.0
_MOST_JSON = 2_000_000  # bytes


def make_app(max_size: int = 100_000_000, upload_seconds: float = _UPLOAD_SECONDS) -> Starlette:
    """Return the page as an application, which refuses uploads that are too large or too slow."""
    jobs = Jobs()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            jobs.close()

    routes = [
        Route("/", _home),
        Route("/upload", _upload, methods=["POST"]),
        Route("/jobs/{key}/read", _read, methods=["POST"]),
        Route("/jobs/{key}/restore", _restore, methods=["POST"]),
        Route("/jobs/{key}/cancel", _cancel, methods=["POST"]),
        Route("/jobs/{key}", _status),
        Route("/jobs/{key}/{kind}", _download),
    ]
    middleware = [
        Middleware(TrustedHostMiddleware, allowed_hosts=_HOSTS, www_redirect=False),
        Middleware(BaseHTTPMiddleware, dispatch=_guard),
    ]
    app = Starlette(
        routes=routes,
        middleware=middleware,
        lifespan=lifespan,
        exception_handlers={HTTPException: _refuse},
    )
    app.state.jobs, app.state.max_size = jobs, max_size
    app.state.upload_seconds = upload_seconds
    app.state.secret = secrets.token_urlsafe(32)
    return app


async def _guard(request: Request, call_next: Any) -> Response:
    """Refuse what did not come from the page, and add the headers of every answer."""
    if not _is_from_the_page(request):
        response: Response = JSONResponse({"error": "this request did not come from the page"}, 403)
    else:
        response = await call_next(request)
    for name, value in _SAFE.items():
        response.headers.setdefault(name, value)
    return response


def _is_from_the_page(request: Request) -> bool:
    here = f"http://{request.headers.get('host', '')}"
    if request.headers.get("origin", here) != here:
        return False
    opened = request.url.path == "/" and request.headers.get("sec-fetch-mode") == "navigate"
    site = request.headers.get("sec-fetch-site", "none")
    if site not in ("none", "same-origin") and not opened:
        return False
    given = request.headers.get("x-declip-secret", "")
    secret = request.app.state.secret
    changes = request.method not in ("GET", "HEAD")
    return not changes or hmac.compare_digest(given.encode(), secret.encode())


async def _refuse(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = error.detail if isinstance(error, HTTPException) else "an error in declip"
    return JSONResponse({"error": detail}, status)


async def _home(request: Request) -> Response:
    nonce = secrets.token_urlsafe(16)
    folder = resources.files("declip.app").joinpath("static")
    page, style, script = (
        folder.joinpath(f"page.{kind}").read_text("utf-8") for kind in ("html", "css", "js")
    )
    page = page.replace("{{style}}", style).replace("{{script}}", script)
    settings = json.dumps(
        {"secret": request.app.state.secret, "maxSize": request.app.state.max_size}
    )
    page = page.replace("{{nonce}}", nonce).replace("{{settings}}", settings)
    return HTMLResponse(page, headers={"Content-Security-Policy": _POLICY.format(nonce=nonce)})


async def _upload(request: Request) -> Response:
    """Take the body as the file; the name comes beside it and is only ever shown."""
    most = request.app.state.max_size
    too_large = f"the file is larger than {most / 1e6:g} MB; start declip app with --max-size"
    if int(request.headers.get("content-length") or 0) > most:
        raise HTTPException(413, too_large)
    try:
        key, job = request.app.state.jobs.new(request.query_params.get("name", ""))
    except ValueError as error:
        raise HTTPException(415, str(error)) from error
    with job.upload.open("wb") as file:
        async for chunk in _body(request, most, too_large):
            file.write(chunk)
    return await _looked_at(key, job, {})


async def _body(request: Request, most: int, too_large: str) -> AsyncIterator[bytes]:
    """Yield what is sent, if it is not too much and not too slow."""
    size, end = 0, asyncio.get_running_loop().time() + request.app.state.upload_seconds
    parts = aiter(request.stream())
    while True:
        try:
            async with asyncio.timeout_at(end):
                chunk = await anext(parts)
        except StopAsyncIteration:
            return
        except TimeoutError as error:
            raise HTTPException(408, "the upload was too slow") from error
        except ClientDisconnect as error:
            raise HTTPException(400, "the upload was cut short") from error
        size += len(chunk)
        if size > most:
            raise HTTPException(413, too_large)
        yield chunk


async def _read(request: Request) -> Response:
    job = _job(request)
    if job.state == "running":
        raise HTTPException(409, "it is being restored")
    return await _looked_at(request.path_params["key"], job, await _json(request))


async def _looked_at(key: str, job: Job, asked: dict[str, Any]) -> Response:
    try:
        said = arguments(asked)
    except UsageError as error:
        raise HTTPException(400, str(error)) from error
    await to_thread.run_sync(job.read, asked, said, abandon_on_cancel=True)
    return JSONResponse({"key": key, **job.status()})


async def _restore(request: Request) -> Response:
    job = _job(request)
    if job.state == "running" or job.said is None:
        raise HTTPException(
            409, "read the file first" if job.said is None else "it is being restored"
        )
    given = await _json(request)
    request.app.state.jobs.run(job, vars(_options(given)), given.get("fill_missing") is True)
    return JSONResponse(job.status(), 202)


async def _cancel(request: Request) -> Response:
    job = _job(request)
    if job.state == "running":
        job.cancel()
    return JSONResponse(job.status())


async def _status(request: Request) -> Response:
    return JSONResponse(_job(request).status())


async def _download(request: Request) -> Response:
    job, kind = _job(request), request.path_params["kind"]
    if kind not in OUTPUTS or job.state != "done":
        raise HTTPException(404, "there is no such result")
    stem = job.name.removesuffix(job.suffix)
    names = {
        "table": f"{stem}-restored{job.suffix}",
        "flags": f"{stem}-cells.csv",
        "report": f"{stem}-report.html",
    }
    shown = kind == "report" and "download" not in request.query_params
    return FileResponse(
        job.output(kind),
        filename=names[kind],
        content_disposition_type="inline" if shown else "attachment",
        headers={"Content-Security-Policy": _REPORT, "X-Frame-Options": "SAMEORIGIN"},
    )


def _job(request: Request) -> Job:
    job: Job | None = request.app.state.jobs.get(request.path_params["key"])
    if job is None:
        raise HTTPException(404, "there is no such table; drop the file again")
    return job


async def _json(request: Request) -> dict[str, Any]:
    try:
        parts = [part async for part in _body(request, _MOST_JSON, "this is too long")]
        given = json.loads(b"".join(parts) or b"{}")
    except ValueError as error:
        raise HTTPException(400, "this is not JSON") from error
    if not isinstance(given, dict):
        raise HTTPException(400, "an object is needed")
    return given


def _options(given: dict[str, Any]) -> Restoring:
    try:
        options = Restoring.of(given)
    except UsageError as error:
        raise HTTPException(400, in_page_words(str(error))) from error
    return options
