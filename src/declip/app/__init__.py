"""A page on this computer alone: drop a file, see what is clipped, restore, look, download."""

from declip.extras import needs

with needs("app"):
    from declip.app.pages import make_app
    from declip.app.server import serve

__all__ = ["make_app", "serve"]
