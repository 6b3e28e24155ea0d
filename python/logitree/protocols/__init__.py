"""Chat models' own protocols: reasoning, content and tool calls with their markers, as a constraint and a parser."""

from logitree.protocols._constraint import ResponseConstraint
from logitree.protocols._parser import Parser
from logitree.protocols._parts import (
    Content,
    Part,
    PartEnd,
    PartEvent,
    PartStart,
    PartText,
    Reasoning,
    Response,
    ToolCall,
)
from logitree.protocols._protocol import Block, Calls, Pairs, Protocol
from logitree.protocols._recognise import clear_caches
from logitree.protocols._table import NAMES, PROTOCOLS
from logitree.protocols._tools import Tool

__all__ = [
    "NAMES",
    "PROTOCOLS",
    "Block",
    "Calls",
    "Content",
    "Pairs",
    "Parser",
    "Part",
    "PartEnd",
    "PartEvent",
    "PartStart",
    "PartText",
    "Protocol",
    "Reasoning",
    "Response",
    "ResponseConstraint",
    "Tool",
    "ToolCall",
    "clear_caches",
]
