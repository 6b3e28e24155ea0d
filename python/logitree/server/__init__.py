"""A server in OpenAI's and llama.cpp's APIs whose output is always legal: `logitree serve`, or `application(engine)`.

It needs Starlette, uvicorn and prometheus-client: `pip install "logitree[server]"`.
"""

from ._app import application
from ._limits import Limits

__all__ = ["Limits", "application"]
