"""`logitree demo`: a real model chooses among thirty actions, and each step is shown."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from typing import Any

from .. import Chain, Finish, Generation, OneOf, Progress, Stats, Token, generate
from ..elizaos import TokenTree, token_tree
from ..engines.llama_cpp import LlamaCpp
from . import _common
from ._terminal import Terminal
from ._trace import TraceTable

ABOUT = """Show a real model choosing actions through a token tree, step by step.

Takes a few seconds. It ends with what it measured and what to try next.
"""

_NAMES = """
REPLY REPLY_THREAD SEND_MESSAGE SEND_EMAIL PAY_COINS SWAP_COINS GET_PRICE CHECK_BALANCE IGNORE MUTE_ROOM
UNMUTE_ROOM JOIN_ROOM LEAVE_ROOM ADD_TASK COMPLETE_TASK LIST_TASKS REMIND_USER CANCEL_REMINDER MEETING_SCHEDULE
SEARCH_WEB SEARCH_MEMORY DRAW_PICTURE DESCRIBE_IMAGE TRANSLATE SUMMARIZE PLAY_MUSIC STOP_MUSIC WEATHER_REPORT
UPDATE_SETTINGS TALK_TO_HUMAN
"""
ACTIONS = _NAMES.split()
"""What a chat agent can do. REPLY is the beginning of REPLY_THREAD on purpose."""

_EXAMPLES = {
    "What is the weather like in Paris today?": "WEATHER_REPORT",
    "Draw me a picture of a house.": "DRAW_PICTURE",
    "Remind me to water the plants at noon.": "REMIND_USER",
    "How do you say thank you in French?": "TRANSLATE",
    "Swap 10 SOL for USDC.": "SWAP_COINS",
    "Play me some rock music.": "PLAY_MUSIC",
    "Let me talk to a human.": "TALK_TO_HUMAN",
    "Send an email to my boss.": "SEND_EMAIL",
    "Set up a meeting with Tom on Monday.": "MEETING_SCHEDULE",
    "Add milk to my to-do list.": "ADD_TASK",
    "lol ok": "IGNORE",
    "Hello, how are you?": "REPLY",
}
"""What the model is shown of the task: a small one learns it from examples only."""

_MESSAGES = (
    "What is the weather like in Berlin tomorrow?",
    "Draw me a picture of a cat.",
    "How do you say good night in French?",
    "Play me some jazz music.",
    "Add eggs to my to-do list.",
    "Send an email to my sister.",
    "I want to talk to a human!",
    "haha ok",
)

_SHOWN = 2
"""How many messages get the whole table; of the others, the result."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("--all", action="store_true", help="the table of every message")
    _common.add_model(parser)
    _common.add_common(parser)


def run(args: argparse.Namespace, out: Terminal, err: Terminal) -> int:
    """Runs the command."""
    began = time.perf_counter()
    model = _common.load(args, err)
    tree = token_tree(payload(model), model.vocabulary)
    _opening(model, tree, time.perf_counter() - began, out)
    total = _Total()
    for i, message in enumerate(_MESSAGES):
        finish = _one(model, tree, message, args.all or i < _SHOWN, out, err)
        total.add(finish.stats)
    _compare(model, tree, out, err)
    _closing(total, out)
    return 0


def payload(model: LlamaCpp) -> str:
    """The actions as a token-tree payload: each name as the model's own tokeniser writes it."""
    leaves = [{"name": name, "tokens": model.tokenize(name)} for name in ACTIONS]
    return json.dumps({"modelId": model.name, "descriptors": [{"path": "action", "leaves": leaves}]})


def prompt(message: str) -> str:
    """Examples, the message, and the beginning of the answer up to where the action's name comes."""
    shots = "".join(f'Message: {text}\n{{"action":"{action}"}}\n\n' for text, action in _EXAMPLES.items())
    return f'{shots}Message: {message}\n{{"action":"'


@dataclass
class _Total:
    """Sums over the messages."""

    sampled: int = 0
    forced: int = 0
    saved: int = 0
    passes: int = 0
    seconds: float = 0.0

    def add(self, stats: Stats) -> None:
        self.sampled += stats.sampled_tokens
        self.forced += stats.forced_tokens
        self.saved += sum(stats.passes_saved.values())
        self.passes += stats.forward_passes
        self.seconds += stats.seconds


def _opening(model: LlamaCpp, tree: TokenTree, seconds: float, out: Terminal) -> None:
    dim = "dim"
    out.line()
    out.line(f"  {out.paint('logitree', 'bold', 'cyan')}  {model.name} chooses among {len(ACTIONS)} actions")
    nodes = tree.info("action")["nodes"]
    facts = f"{len(model.vocabulary):,} tokens, a tree of {nodes} nodes, ready in {seconds:.2f} s"
    out.line(out.paint(f"            {facts}", dim))
    out.line(out.paint("            the model is asked only where more than one token is allowed", dim))


def _one(model: LlamaCpp, tree: TokenTree, message: str, shown: bool, out: Terminal, err: Terminal) -> Finish:
    """One message: its table if shown, and the action."""
    out.line()
    out.line(f'  {out.paint("message", "dim")} "{out.paint(message, "bold")}"')
    generation = generate(model, prompt(message), tree.at("action"), chain=Chain.greedy(), chat=False, trace=True)
    finish = _watch(generation, TraceTable(out) if shown else None, err)
    stats, arrow = finish.stats, "→" if out.unicode else "->"
    out.line(
        f"  {out.paint(f'{arrow} {generation.value}', 'bold', 'green')}   "
        + out.paint(
            f"{stats.forward_passes} of {stats.output_tokens} forward passes, {stats.seconds * 1e3:.0f} ms", "dim"
        )
    )
    return finish


def _watch(events: Generation[Any], table: TraceTable | None, err: Terminal) -> Finish:
    for event in events:
        if isinstance(event, Progress):
            _common.show_progress(err, event)
            continue
        err.clear()
        if isinstance(event, Finish):
            return event
        if table is not None and isinstance(event, Token):
            table.token(event)
    raise RuntimeError("a generation ends with Finish")


def _compare(model: LlamaCpp, tree: TokenTree, out: Terminal, err: Terminal) -> None:
    """The first question again, in other ways."""
    ask = prompt(_MESSAGES[0])
    ways: dict[str, dict[str, Any]] = {
        "one pass a token, nothing forced": {"constraint": tree.at("action"), "force": False},
        'plain texts, spelled in any way, then "}': {"constraint": OneOf(ACTIONS, following='"}')},
        "sampled, temperature 1.5, seed 0": {"constraint": tree.at("action"), "temperature": 1.5, "seed": 0},
    }
    out.line()
    out.line(f'  {out.paint("again  ", "dim")} "{out.paint(_MESSAGES[0], "bold")}"')
    for name, way in ways.items():
        how = way if "seed" in way else {"chain": Chain.greedy(), **way}
        finish = _watch(generate(model, ask, chat=False, **how), None, err)
        passes = f"{finish.stats.forward_passes} passes"
        out.line(f"    {name:<44} {out.paint(f'{passes:<9}', 'dim')} {out.paint(finish.text, 'green')}")


def _closing(total: _Total, out: Terminal) -> None:
    tokens = total.sampled + total.forced
    out.line()
    saved = out.paint(f"{total.saved} of {tokens} forward passes saved ({total.saved / tokens:.0%})", "bold", "green")
    out.line(f"  {len(_MESSAGES)} messages, {tokens} tokens: {total.sampled} sampled, {total.forced} forced")
    out.line(f"  {saved}, {tokens / total.seconds:,.0f} tokens/s with the prompts")
    out.line()
    out.line(out.paint("  try next", "dim"))
    for command in (
        'logitree choose "Is the sky green?" --choices YES,NO',
        'logitree generate "Write a haiku about rain" --trace --seed 0',
        "logitree vocab --search token",
        'logitree trie --prefix " hell" --depth 4',
        "logitree serve",
    ):
        out.line(f"    {out.paint(command, 'cyan')}")
    out.line(f"      {out.paint('or make serve; then http://127.0.0.1:8080/ shows why each token came', 'dim')}")
    out.line()
