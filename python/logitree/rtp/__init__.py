"""RTP-LLM's tree-decode files and the roles of its logits processors, over the native constraints.

`load_tree` reads a file; a processor masks the logits of several rows and follows them; `slate` searches one item after
another; `Config` reads the settings of a deployment and of a request. It knows no engine and no server.
"""

from __future__ import annotations

from .. import _renamed
from ._config import Config
from ._matchers import GrammarProcessor, ThinkProcessor
from ._problems import ConfigError, Problem
from ._processor import Processor
from ._processors import Processors
from ._recommendation import RecommendationProcessor
from ._report import BEYOND, Finding, Report
from ._sequences import MultiSequenceProcessor
from ._slate import slate
from ._tree import RtpTree, load_tree
from ._tree_processor import TreeProcessor

__all__ = [
    "BEYOND",
    "Config",
    "ConfigError",
    "Finding",
    "GrammarProcessor",
    "MultiSequenceProcessor",
    "Problem",
    "Processor",
    "Processors",
    "RecommendationProcessor",
    "Report",
    "RtpTree",
    "ThinkProcessor",
    "TreeProcessor",
    "load_tree",
    "slate",
]

_renamed.install({"RtpTree": RtpTree})
