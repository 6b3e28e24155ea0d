"""A protocol's response as a constraint: a grammar of reasoning, content and tool calls over a vocabulary's markers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from .. import _core
from .._constraint import Context, OneOf, Typed, bind_in, constraint_of
from .._core import Constraint, ConstraintError, Grammar, Vocabulary
from .._errors import error
from ._arguments import keyed_arguments, unquoted_arguments
from ._forms import BLANKS, bare, pieces
from ._marks import ANY_TOKEN, Marks
from ._parser import Parser
from ._parts import Kind, Response
from ._pieces import SPACE, any_text, either, joined, limit, structure
from ._protocol import Block, Protocol
from ._python import keyword_arguments
from ._tools import Tool, tools_of

_MAX_BOUND = 4
"""Vocabularies and prompts for which a constraint keeps its grammar."""


class ResponseConstraint(Constraint):
    """A response of a protocol; `Protocol.constraint` makes it and describes the arguments.

    Its `Generation.value` is a `Response`.
    """

    def __init__(
        self,
        protocol: Protocol,
        answer: Any = None,
        *,
        tools: Mapping[str, Any] | Iterable[Any] = (),
        tool_choice: str = "auto",
        parallel: bool = True,
        reasoning: bool | int | None = None,
        begun: bool | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.protocol, self.answer, self.begun = protocol, answer, begun
        self.tools = _chosen(tools_of(tools), tool_choice)
        """The tools that may be called."""
        self.required = tool_choice not in ("auto", "none")
        """Whether there is at least one call."""
        self.parallel = parallel and tool_choice in ("auto", "required")
        """Whether there may be several calls."""
        self.reasoning = reasoning
        """What was asked for of reasoning, as of `Protocol.constraint`."""
        self.options = {"numbers": "plain", **(options or {})}
        """Those of `Grammar.json_schema` for the arguments."""
        if self.tools and protocol.calls is None:
            raise error(ConstraintError, f"{protocol} has no tool calls", help="leave tools out")
        if not isinstance(reasoning, bool | int | None) or (reasoning or 0) < 0:
            message = f"reasoning is {reasoning!r}"
            raise error(ConstraintError, message, help="give None, True, or the most tokens of reasoning")
        if reasoning and protocol.reasoning is None:
            raise error(ConstraintError, f"{protocol} has no reasoning", help="leave reasoning out")
        if answer is not None and self.required:
            message = f"an answer with tool_choice={tool_choice!r} would never be written"
            raise error(ConstraintError, message, help='leave it out, or give tool_choice="auto"')
        self._answer = None if answer is None else constraint_of(answer)
        if self.tools and self._answer is not None and _grammar_of(self._answer) is None:
            kind = type(self._answer).__name__
            help = "with tools the answer is a grammar, a list of texts, a schema or a type"
            raise error(ConstraintError, f"the answer is a {kind}", help=help)
        self._bound: list[tuple[tuple[Vocabulary, Block | None, bool], Grammar]] = []

    def matcher(self, vocabulary: Vocabulary, /) -> _core.Matcher:
        """A matcher at the beginning of the response.

        Raises:
            ConstraintError: a budget of reasoning before an answer that is no grammar, and the end of reasoning is no
                token of the vocabulary; an answer that may begin like a tool call; arguments that this protocol cannot
                write.
        """
        return self.bind(Context(vocabulary))

    def bind(self, context: Context) -> _core.Matcher:
        """As `matcher`, with the prompt, which may have begun a block of reasoning or content."""
        marks = Marks(self.protocol, context.vocabulary)
        begun = self._begun(marks, context.prompt)
        budget = self.reasoning if self.reasoning is not True and self.reasoning else None
        if begun in marks.protocol.content:
            budget = None  # no reasoning comes any more
        alone = self._answer is not None and _grammar_of(self._answer) is None
        block = begun or marks.protocol.reasoning
        # Of markers that are text, or several tokens, a grammar knows every spelling, and counts.
        texts = () if block is None else (*block.ends, *(() if begun else block.begins))
        counts = budget is None or any(_marker_token(marks, text) is None for text in texts)
        if counts and not alone:
            return bind_in(self._grammar(marks, begun, False), context)
        if not alone:
            return self._budgeted(marks, context, begun, budget, bind_in(self._grammar(marks, begun, True), context))
        assert self._answer is not None
        then = bind_in(self._answer, context)
        if self.protocol.content:
            help = "give a grammar, a list of texts, a schema or a type"
            raise error(ConstraintError, f"{self.protocol} frames its content, and the answer is no grammar", help=help)
        if self.reasoning is True:
            help = "give reasoning=None or a number, or an answer that is a grammar"
            raise error(ConstraintError, "reasoning must come, and the answer is no grammar", help=help)
        if self.protocol.reasoning is None or (self.reasoning is not None and not self.reasoning and not begun):
            return then
        return self._budgeted(marks, context, begun, budget, then)

    def parser(
        self, vocabulary: Vocabulary | None = None, *, prompt: Sequence[int] = (), begun: bool | None = None
    ) -> Parser:
        """The parser of this constraint's responses, which knows the tools and where an answer may be.

        Args:
            vocabulary, prompt, begun: as of `Protocol.parser`.
        """
        without: list[Kind] = [] if self.tools else ["tool_call"]
        if self.reasoning is not None and not self.reasoning:
            without.append("reasoning")
        return Parser(
            self.protocol,
            vocabulary,
            prompt=prompt,
            begun=self.begun if begun is None else begun,
            tools=self.tools,
            answer_only=self.answer is not None,
            without=without,
        )

    def read(self, tokens: Sequence[int], context: Context, /) -> Response:
        """The response of these tokens, an end-of-generation token included or not, with the value of its answer."""
        parser = self.parser(context.vocabulary, prompt=context.prompt)
        parser.feed(tokens)
        parser.finish()
        found = parser.response
        if self._answer is None or found.tool_calls:
            return found
        return Response(found.parts, found.tail, self._answer.value(found.content, ()))

    def _begun(self, marks: Marks, prompt: Sequence[int]) -> Block | None:
        """The block that the prompt has begun; of reasoning with all its markers where only `begun` says so."""
        if self.begun is None:
            return marks.begun(prompt)
        return marks.protocol.reasoning if self.begun else None

    def _budgeted(
        self, marks: Marks, context: Context, begun: Block | None, budget: int | None, then: _core.Matcher
    ) -> _core.Matcher:
        """At most so many tokens of reasoning, then a matcher; `logitree.ReasoningBudget` has the states."""
        block = marks.protocol.reasoning
        assert block is not None
        ends = []
        for text in (begun or block).ends:
            end = _marker_token(marks, text)
            if end is None:
                message = f"{text!r} is no token of this vocabulary: a budget needs one before an answer of this kind"
                raise error(ConstraintError, message, help="give reasoning=None, or an answer that is a grammar")
            ends.append([end])
        # White space before an answer is its own, but for what an end brings with it.
        texts = block.begins if self._answer is None else tuple(way.begin for way in block.ways)
        begins = [_ids(marks, begin, context) for begin in texts]
        whole = any(len(begin) > 1 for begin in begins)
        after = _ids(marks, block.after, context) if self._answer is not None and not whole else []
        ends = [[*end, *after] for end in ends]
        bound = _core.reasoning_budget(context.vocabulary, begin=begins, end=ends, budget=budget, whole=whole)
        made: _core.Matcher = bound.matcher(at="inside" if begun else "outside", then=then)
        return made

    def _grammar(self, marks: Marks, begun: Block | None, after: bool) -> Grammar:
        """The grammar of the response; with `after`, of what follows the reasoning."""
        assert marks.vocabulary is not None
        key = (marks.vocabulary, begun, after)
        for known, grammar in self._bound:
            if known == key:
                return grammar
        made = _Writer(self, marks).response(begun, after)
        self._bound = [*self._bound[-_MAX_BOUND + 1 :], (key, made)]
        return made

    def _key(self) -> tuple[Any, ...]:
        options = json.dumps(self.options, sort_keys=True, default=repr)
        reasoning = (type(self.reasoning), self.reasoning)
        return (self.protocol, self._answer, self.tools, self.required, self.parallel, reasoning, self.begun, options)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResponseConstraint) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_bound": []}

    def __repr__(self) -> str:
        calls = f", tools {', '.join(tool.name for tool in self.tools)}" if self.tools else ""
        return f"<response of {self.protocol}{calls}>"


class _Writer:
    """Writes the grammar of one constraint over the markers of one vocabulary."""

    def __init__(self, constraint: ResponseConstraint, marks: Marks) -> None:
        self.of, self.protocol, self.marks = constraint, marks.protocol, marks
        self.stops = self._stops()
        self._literals: dict[str, Grammar | None] = {}

    def response(self, begun: Block | None, after: bool) -> Grammar:
        """Reasoning, then the rest."""
        if begun in self.protocol.content:
            return self._rest(begun)
        rest, block = self._rest(), self.protocol.reasoning
        if block is None:
            return rest
        follows, skipped = self._following(block), self.literal(block.skipped)
        unless = skipped and skipped.optional()
        if after:
            # The matcher of the budget has read the end, and what comes before an answer where that may be.
            if self.of._answer is not None and len(self.marks.bound(block.begin)) == 1:
                return rest
            return joined(follows if begun or follows is None else follows.optional(), unless, rest)
        reasoning = self.of.reasoning
        if reasoning is not None and not reasoning:
            if begun is None:
                return joined(unless, rest)
            return joined(either([joined(self.literal(end)) for end in begun.ends]), follows, rest)
        must = reasoning is True
        most = reasoning if reasoning is not None and not must else None
        if begun:
            return joined(either([self.until(end, self.stops, most) for end in begun.ends]), follows, rest)
        before = self.literal(block.before)
        ways = [joined(self.literal(way.begin), self.until(way.end, self.stops, most)) for way in block.ways]
        whole = joined(before and before.optional(), either(ways), follows)
        return (whole if must else (whole if skipped is None else whole | skipped).optional()) + rest

    def _following(self, block: Block) -> Grammar | None:
        """What comes between reasoning and the rest. Free text has any white space itself."""
        if block.after.strip():
            return self.literal(block.after)
        if self.of.required:
            return SPACE if len(block.after) < 3 else SPACE | Grammar.literal(block.after)
        answer = None if self.of._answer is None else _grammar_of(self.of._answer)
        if answer is None or not block.after:
            return None
        if self._may_begin(answer, block.after[0]):
            return self.literal(block.after)
        return Grammar.choice([block.after[:n] for n in range(len(block.after) + 1)])

    def _may_begin(self, answer: Grammar, character: str) -> bool:
        """Whether an answer may begin with a character of white space, in a token of its own."""
        vocabulary = self.marks.vocabulary
        assert vocabulary is not None
        ids = [id for id in vocabulary.find(character.encode()) if vocabulary.kind(id) in ("normal", "byte")]
        matcher = answer.matcher(vocabulary)
        return any(matcher.is_allowed(id) for id in ids)

    def _rest(self, begun: Block | None = None) -> Grammar:
        """What follows the reasoning, or the beginning of a block of content."""
        rest, frame = self._parts() if begun is None else self._continued(begun), self.protocol.frame
        if frame is None:
            return rest
        # A parser takes all of an answer for content, so the end of the frame does not follow one.
        end = self.literal(frame.end) if self.of._answer is None or self.protocol.content else None
        return rest | joined(SPACE if frame.begin else None, self.literal(frame.begin), rest, end)

    def _parts(self) -> Grammar:
        """Content, calls, or both."""
        answer = None if self.of._answer is None else _grammar_of(self.of._answer)
        calls = self._calls() if self.of.tools else None
        if self.of.required:
            assert calls is not None
            return calls(self._before_calls())
        if self.protocol.content:
            return self._framed(answer, calls)
        if answer is not None:
            self._check_beginning(answer)
            return answer if calls is None else answer | calls(self._before_calls())
        form = self.protocol.calls
        without_marker = None if form is None else bare(form)
        if without_marker is None:
            text = any_text(tuple(self.stops))
        else:
            excluded = "|".join([*map(re.escape, self.stops), without_marker.pattern])
            text = Grammar.lark(f"start: TEXT\nTEXT: /(?s:.*)/ & ~/(?s:.*)({excluded})(?s:.*)/")
        if calls is None:
            return text
        assert form is not None
        if without_marker is not None:
            return text + calls(self._before_calls()).optional()
        after = text if form.before_content else None
        trigger, bound = form.trigger, self.marks.bound(form.trigger)
        token = self.marks.token(bound)
        if token is None and ANY_TOKEN.search(bound):
            # Text before a token: what reads it as free text, too, distinguishes the two at the token.
            return text + joined(calls(self._opening()), after).optional()
        mark = trigger if token is None else Grammar.token(token)
        stops = [stop for stop in self.stops if stop != trigger or token is not None]
        called = joined(calls(self._opening(trigger)), after)
        return Grammar.tags([(mark, called, [])], stop_after_first=True, excludes=stops)

    def _continued(self, begun: Block) -> Grammar:
        """The parts after the beginning of a block of content in the prompt."""
        final, *others = self.protocol.content
        text = joined(self.until(begun.end, self.stops), self.literal(begun.after))
        if self.of.required:
            if begun not in others:
                message = f"a call is required, and the prompt has begun the answer with {begun.begin!r}"
                raise error(ConstraintError, message, help="leave the answer's beginning out of the prompt")
            return joined(self.literal(begun.end), self.literal(begun.after), self._calls()(self._opening()))
        if begun != final:
            return text + self._parts()
        made = self._final(None if self.of._answer is None else _grammar_of(self.of._answer))
        if begun in others and self.of.tools:
            return made | text + self._calls()(self._opening())
        return made

    def _final(self, answer: Grammar | None) -> Grammar:
        """The final message after its beginning."""
        end = self.protocol.content[0].end
        if answer is None:
            return self.until(end, self.stops)
        if not self.marks.is_hard(self.marks.bound(end)[:1]):
            message = f"{end!r} is text in this vocabulary, so an answer cannot be distinguished from its end"
            raise error(ConstraintError, message, help="leave the answer out")
        return joined(answer, self.literal(end))

    def _framed(self, answer: Grammar | None, calls: Callable[[Grammar], Grammar] | None) -> Grammar:
        """The final message, or calls, before which other content may come."""
        final, *others = self.protocol.content
        made = joined(self.literal(final.begin), self._final(answer))
        if calls is None:
            return made
        called = calls(self._opening())
        for block in others:
            before = joined(self.literal(block.begin), self.until(block.end, self.stops), self.literal(block.after))
            called = before.optional() + called
        return made | called

    def _calls(self) -> Callable[[Grammar], Grammar]:
        """The section of calls after its opening, which ends before the first name."""
        calls = self.protocol.calls
        assert calls is not None
        middles: dict[str, list[str]] = {calls.head: []}
        for head, middle in ((calls.head, calls.middle), *calls.also):
            middles.setdefault(head, []).append(middle)
        arguments = self._arguments()
        named = {head: self._named(found, arguments) for head, found in middles.items()}
        others = [joined(self.form(head), call) for head, call in named.items() if head != calls.head]
        between = self._between()

        def section(opening: Grammar) -> Grammar:
            made = either([joined(opening, named[calls.head]), *others])
            if self.of.parallel:
                more = either([joined(self.form(calls.head), named[calls.head]), *others])
                made = made + joined(between, more).repeat()
            return joined(made, self.literal(calls.end))

        return section

    def _before_calls(self) -> Grammar:
        """What comes before the first name, with what may come before that."""
        calls = self.protocol.calls
        assert calls is not None
        prefix = self.literal(calls.prefix)
        return joined(SPACE if calls.before else None, prefix and prefix.optional(), self._opening())

    def _opening(self, without: str = "") -> Grammar:
        """What comes before the first name, without its trigger if that is given."""
        calls = self.protocol.calls
        assert calls is not None
        opening = calls.begin + calls.head
        rest = opening.removeprefix(calls.trigger)
        space = SPACE if rest and calls.begin and not rest[0].isspace() else None
        return joined(None if without else self.literal(calls.trigger), space, self.form(rest))

    def _between(self) -> Grammar:
        """What comes between two calls."""
        calls = self.protocol.calls
        assert calls is not None
        if self.protocol.joint:
            return joined(self.literal(self.protocol.joint))
        if calls.keywords and calls.separator == "\n":
            return Grammar.literal("\n")  # the lines of a program
        written = calls.separator.strip()
        space = calls.separator.partition(written)[2] if written else calls.separator
        return joined(self.literal(written), SPACE | Grammar.literal(space))

    def _named(self, middles: Sequence[str], arguments: Sequence[Grammar]) -> Grammar:
        """A call of any tool after its head."""
        form = self.protocol.calls
        assert form is not None
        tail = either([self.form(tail) for tail in (form.tail, *form.tails)])
        blocks = (*(self.protocol.reasoning.ways if self.protocol.reasoning else ()), *self.protocol.content)
        begins = tuple(block.begin for block in blocks)
        # Of many tools most have the same between name and arguments.
        shared = None if any("{name}" in middle for middle in middles) else self._middle(middles, "")
        calls, in_object = [], form.in_object
        for tool, written in zip(self.of.tools, arguments, strict=True):
            name = json.dumps(tool.name)[1:-1] if in_object else tool.name
            if (form.head + name + form.middle).startswith(begins):
                message = f"a tool is called {tool.name!r}, which begins something else in {self.protocol}"
                raise error(ConstraintError, message, help="give it another name")
            middle = self._middle(middles, name) if shared is None else shared
            calls.append(joined(name, middle, written))
        return joined(either(calls), tail)

    def _middle(self, middles: Sequence[str], name: str) -> Grammar:
        """What comes between a tool's name and its arguments."""
        return either([self.form(middle.replace("{name}", name)) for middle in middles])

    def _arguments(self) -> Sequence[Grammar]:
        """The arguments of each tool."""
        calls, options = self.protocol.calls, self.of.options
        assert calls is not None
        if calls.keywords:
            return [keyword_arguments(tool, options) for tool in self.of.tools]
        if calls.quote:
            ends = [calls.trigger, calls.tail.removeprefix("}"), *self._text_ends()]
            return unquoted_arguments(self.of.tools, calls.quote, self.parts, ends, options)
        if calls.pairs is None:
            return Grammar._arguments([(tool.name, tool.schema) for tool in self.of.tools], **options)
        made = keyed_arguments(self.of.tools, calls.pairs, self.parts, self._text_ends(), options)
        if not calls.middle.endswith("\n"):
            return made
        # A call without arguments may have an empty line in their place.
        line = Grammar.literal("\n").optional()
        return [line + one for one in made]

    def _check_beginning(self, answer: Grammar) -> None:
        """An answer must not begin like anything else that may come in its place."""
        triggers: list[str] = []
        reasoning, calls = self.protocol.reasoning, self.protocol.calls
        if reasoning is not None and (self.of.reasoning is None or self.of.reasoning):
            triggers += [way.begin for way in reasoning.ways]
        if calls is not None and self.of.tools:
            triggers += [head for head, _ in calls.also]
            without_marker = bare(calls)
            triggers += without_marker.samples if without_marker else (calls.trigger, calls.before + calls.trigger)
        if self.protocol.frame is not None:
            triggers.append(self.protocol.frame.begin)
        assert self.marks.vocabulary is not None
        for trigger in triggers:
            first = self.marks.token(self.marks.bound(trigger)[:1])
            if first is not None:
                clash = answer.matcher(self.marks.vocabulary).is_allowed(first)
            else:
                clash = self._matcher_of_bytes(answer).validate(trigger.encode()) == len(trigger.encode())
            if clash:
                message = f"the answer may begin with {trigger!r}, which begins something else in {self.protocol}"
                help = "leave the answer out for any text, or give one that begins differently"
                raise error(ConstraintError, message, help=help)

    def _matcher_of_bytes(self, answer: Grammar) -> _core.Matcher:
        """An answer's matcher over all bytes, which reads texts whatever tokens spell them."""
        try:
            return answer.matcher(_bytes())
        except ConstraintError as wrong:
            message = "the answer names tokens, and the markers of this vocabulary are text"
            raise error(
                ConstraintError, message, help="leave tools and reasoning out, or give another answer"
            ) from wrong

    # -- pieces

    def literal(self, text: str) -> Grammar | None:
        """This text, its markers as tokens where they are tokens; None if it is empty."""
        if text not in self._literals:
            self._literals[text] = self._written(text)
        return self._literals[text]

    def _written(self, text: str) -> Grammar | None:
        made: Grammar | None = None
        for piece, token in self._pieces(text):
            one = Grammar.literal(piece) if token is None else Grammar.token(token)
            made = one if made is None else made + one
        return made

    def parts(self, text: str) -> list[Any]:
        """As of `literal`, as the core describes them in JSON."""
        pieces = self._pieces(text)
        return [{"text": piece} if token is None else {"token": {"token_id": token}} for piece, token in pieces]

    def _pieces(self, text: str) -> Iterator[tuple[str, int | None]]:
        """Pieces of a text, each with the token that it is, if it is one."""
        for piece in filter(None, _split(self.marks.bound(text))):
            yield piece, self.marks.token(piece)

    def form(self, text: str) -> Grammar:
        """A text with blanks in it, as of `literal`."""
        made = [Grammar.regex(BLANKS[piece]) if piece in BLANKS else self.literal(piece) for piece in pieces(text)]
        return joined(*made)

    def until(self, end: str, excludes: Sequence[str], max_tokens: int | None = None) -> Grammar:
        """Any text up to an end, and the end."""
        bound = self.marks.bound(end)
        token = self.marks.token(bound)
        if token is None and ANY_TOKEN.search(bound):
            return joined(any_text(tuple(excludes), max_tokens), self.literal(end))
        mark: Any = end if token is None else {"type": "token", "token": token}
        others = [text for text in excludes if token is not None or text != end]
        content = {"type": "any_text", "excludes": others, **limit(max_tokens)}
        return structure({"type": "tag", "begin": "", "content": content, "end": mark})

    def _stops(self) -> list[str]:
        """Texts of markers that free text must not contain: control tokens are no text anyway."""
        protocol = self.protocol
        found: list[str] = []
        if protocol.reasoning is not None:
            found += [text for way in protocol.reasoning.ways for text in (way.begin, way.end)]
        for block in (*protocol.content, *filter(None, [protocol.frame])):
            found += [block.begin, block.end]
        if protocol.calls is not None:
            calls = protocol.calls
            # Text in a frame ends at the frame's end alone.
            unmarked = bare(calls) or (protocol.content and not any(one in calls.trigger for one in protocol.markers))
            found += [] if unmarked else [calls.trigger]
            found += [*(head for head, _ in calls.also), calls.prefix]
        found.append(protocol.joint)
        return list(dict.fromkeys(text for text in [*found, *protocol.turn_end] if text and not self._is_control(text)))

    def _text_ends(self) -> list[str]:
        """Markers that a value without quotes must not contain."""
        return [text for text in self.protocol.turn_end if not self._is_control(text)]

    def _is_control(self, text: str) -> bool:
        vocabulary = self.marks.vocabulary
        assert vocabulary is not None
        tokens = [self.marks.token(found[0]) for found in ANY_TOKEN.finditer(self.marks.bound(text))]
        return any(token is not None and vocabulary.kind(token) == "control" for token in tokens)


def _chosen(tools: tuple[Tool, ...], choice: str) -> tuple[Tool, ...]:
    """The tools that may be called under a choice."""
    if choice == "none":
        return ()
    if choice == "auto":
        return tools
    if not tools:
        raise error(ConstraintError, f"tool_choice is {choice!r}, and there are no tools", help="give tools")
    if choice == "required":
        return tools
    named = tuple(tool for tool in tools if tool.name == choice)
    if not named:
        names = ", ".join(repr(tool.name) for tool in tools)
        help = f'give "auto", "required", "none", or the name of a tool: {names}'
        raise error(ConstraintError, f"tool_choice is {choice!r}", help=help)
    return named


def _grammar_of(constraint: Any) -> Grammar | None:
    """The grammar that a constraint is; None for one of another kind."""
    if isinstance(constraint, Grammar):
        return constraint
    if isinstance(constraint, Typed):
        return constraint.inner
    return constraint._grammar() if isinstance(constraint, OneOf) else None


def _split(bound: str) -> list[str]:
    """A bound text as pieces of text and single tokens."""
    pieces, at = [], 0
    for found in ANY_TOKEN.finditer(bound):
        pieces += [bound[at : found.start()], found[0]]
        at = found.end()
    return [*pieces, bound[at:]]


def _marker_token(marks: Marks, text: str) -> int | None:
    """The one token that a marker is; None if it is text, or several."""
    return marks.token(marks.bound(text))


def _ids(marks: Marks, text: str, context: Context) -> list[int]:
    """Tokens of a text with markers: whole ones where there are, else the model's own tokenisation, else bytes."""
    made: list[int] = []
    for piece in filter(None, _split(marks.bound(text))):
        token = marks.token(piece)
        if token is not None:
            made.append(token)
            continue
        whole = [id for id in context.vocabulary.find(piece.encode()) if context.vocabulary.kind(id) == "normal"]
        if whole:
            made.append(whole[0])
        elif context.tokenize is not None:
            made += context.tokenize(piece)
        else:
            made += [_byte(context.vocabulary, byte, text) for byte in piece.encode()]
    return made


def _byte(vocabulary: Vocabulary, byte: int, text: str) -> int:
    for id in vocabulary.find(bytes([byte])):
        if vocabulary.kind(id) in ("normal", "byte"):
            return id
    raise error(ConstraintError, f"the vocabulary cannot spell {text!r}", help="give the vocabulary of the model")


@lru_cache(maxsize=1)
def _bytes() -> Vocabulary:
    """A vocabulary of all bytes."""
    return Vocabulary.from_tokens([bytes([byte]) for byte in range(256)])
