"""Async streaming: the model runs in a worker thread, the event loop stays free."""

import asyncio

import logitree
from logitree.engines.llama_cpp import bundled_model


async def main() -> None:
    async for piece in logitree.generate(bundled_model(), "Tell me about the sea.", max_tokens=30, seed=1).pieces():
        print(piece, end="", flush=True)
    print()


asyncio.run(main())
