"""What a chat model's response looks like: the markers of reasoning, content and tool calls, as one frozen value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from .._core import Vocabulary

if TYPE_CHECKING:
    from .._generation import Generation
    from ._constraint import ResponseConstraint
    from ._parser import Parser
    from ._parts import Response

OBJECT = '{"name": "'
"""How a call begins that is a JSON object."""
COMPACT = OBJECT.replace(" ", "")
"""The same without white space."""


TYPES = ("string", "null", "boolean", "number", "array", "object")
"""The types of JSON's values, texts first."""


@dataclass(frozen=True, slots=True)
class Block:
    """A text between two markers."""

    begin: str
    """The marker before the text."""
    end: str
    """The marker after the text."""
    after: str = ""
    """What follows the end and belongs to neither side. Of white space a model may write less, or none."""
    before: str = ""
    """White space that a model may write before it."""
    also: tuple[tuple[str, str], ...] = ()
    """Further markers in pairs, a begin and its end. A parser takes any of the ends."""
    skipped: str = ""
    """What a model may write in its place."""

    @property
    def ways(self) -> tuple[Block, ...]:
        """The block with each pair of its markers."""
        pairs = ((self.begin, self.end), *self.also)
        return tuple(replace(self, begin=begin, end=end, also=()) for begin, end in pairs)

    @property
    def begins(self) -> tuple[str, ...]:
        """How it begins: with the white space before it, and without."""
        return tuple(dict.fromkeys(text for way in self.ways for text in (way.before + way.begin, way.begin)))

    @property
    def ends(self) -> tuple[str, ...]:
        """How it ends."""
        return tuple(way.end for way in self.ways)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Arguments as keys and values: texts as they are, everything else as JSON. Of a value that may be a text or
    something else, what is valid as something else is that."""

    begin: str
    """What comes before a key."""
    middle: str
    """What comes between key and value. `{type}` in it is the value's type: one of `TYPES`."""
    end: str
    """What comes after a value."""
    text_middle: str = ""
    """What comes between key and value where the value is a text; empty: `middle`, too."""
    python: Literal["", "words", "literals"] = ""
    """Whether a value may be `True`, `False` or `None`, or any of Python's literals, as well as JSON's."""
    nested: bool = False
    """Whether objects and arrays are such pairs too, an item with the key `item`. `{key}` in `end` is the key then."""
    quotes: tuple[str, str] = ("", "")
    """What a text is between that contains one of `quoted`; empty: texts are as they are."""
    quoted: tuple[str, ...] = ()
    """What no text contains that has no quotes."""

    @property
    def tag(self) -> str:
        """What every element begins with where pairs are `nested`, before its bracket."""
        return self.begin.removesuffix("<")

    @property
    def ways(self) -> tuple[tuple[tuple[str, ...], str], ...]:
        """What comes between key and value, each with the types of the values."""
        if "{type}" in self.middle:
            return tuple(((type,), self.middle.replace("{type}", type)) for type in TYPES)
        if self.text_middle:
            return ((TYPES[:1], self.text_middle), (TYPES[1:], self.middle))
        return ((TYPES, self.middle),)


@dataclass(frozen=True, slots=True)
class Calls:
    """How tool calls are written: `before`, `begin`, then each call, `separator` between two of them, then `end`.

    A call is `head`, the name, `middle`, the arguments, `tail`. In these, `{number}` is any number, `{id}` any
    identifier, and `{id9}` one of nine letters and digits; `{name}` in `middle` is the name once more.
    """

    trigger: str
    """With what calls begin, wherever it occurs: the first characters of `begin` and `head`."""
    head: str
    """What comes before the name."""
    middle: str
    """What comes between the name and the arguments."""
    tail: str
    """What comes after the arguments."""
    before: str = ""
    """White space between what precedes calls and `begin`."""
    begin: str = ""
    """What comes before the first call."""
    end: str = ""
    """What comes after the last call."""
    separator: str = ""
    """What comes between two calls."""
    pairs: Pairs | None = None
    """How arguments are written; None: as a JSON object."""
    keywords: bool = False
    """Whether arguments are written as in Python, `a=1, b='x'`."""
    quote: str = ""
    """What texts are between in arguments whose keys have no quotes, `a:1,b:<|"|>x<|"|>`; empty: another form."""
    also: tuple[tuple[str, str], ...] = ()
    """Further heads and middles. An empty head: a message may have the name before its first marker."""
    tails: tuple[str, ...] = ()
    """Further tails."""
    prefix: str = ""
    """What a model may write before the trigger."""
    unmarked: bool = False
    """Whether the trigger is no marker: calls are an object, a list of objects or a list of Python's calls, and content
    may begin like one."""
    before_content: bool = False
    """Whether content may follow calls, as it may precede them."""

    @property
    def in_object(self) -> bool:
        """Whether a call is a JSON object with the name and the arguments."""
        return bool(self.opening)

    @property
    def opening(self) -> str:
        """What `head` has of that object, or nothing."""
        return next((text for text in (OBJECT, COMPACT) if self.head.endswith(text)), "")

    @property
    def keys(self) -> tuple[str, ...]:
        """The names that arguments may have in an object."""
        own = re.findall(r'"(\w+)": ?$', self.middle) if self.in_object else []
        return tuple(dict.fromkeys(("arguments", "parameters", *own)))


@dataclass(frozen=True, slots=True)
class Protocol:
    """The form of a family of models' responses.

    ```python
    protocol = Protocol.named("qwen3")
    constraint = protocol.constraint(tools=[weather], tool_choice="required", reasoning=200)
    response = logitree.generate(model, prompt, constraint).value
    ```

    A marker is what the vocabulary says: a token of its own where there is a control token or an added token with
    this text, plain text otherwise.
    """

    name: str
    """The form's name, as `named` takes it."""
    models: tuple[str, ...]
    """Models that write it."""
    markers: tuple[str, ...]
    """Texts that are tokens of their own in the vocabularies of these models."""
    reasoning: Block | None = None
    """How reasoning is written; None: there is none."""
    content: tuple[Block, ...] = ()
    """The frames of content, the answer's first; empty: content has no markers."""
    calls: Calls | None = None
    """How tool calls are written; None: there are none."""
    frame: Block | None = None
    """What a model may write round all that follows the reasoning."""
    joint: str = ""
    """What comes between two messages of one response."""
    turn_end: tuple[str, ...] = ()
    """Texts that end the turn, beside the vocabulary's end-of-generation tokens."""
    template: tuple[tuple[str, ...], ...] = ()
    """Which texts a chat template of this family has, if it writes no calls: all of one of these."""
    tokens: tuple[tuple[str, ...], ...] = ()
    """Which tokens a vocabulary of this family has: all of one of these."""
    suffixed: bool = False
    """Whether each checkpoint may have a suffix of its own in all markers, as in `<think:6124c78e>`: its vocabulary
    says which."""

    @staticmethod
    def named(name: str) -> Protocol:
        """The protocol with this name: `logitree.protocols.NAMES` lists them.

        Raises:
            ConstraintError: there is none; the message lists the names.
        """
        from ._recognise import named

        return named(name)

    @staticmethod
    def recognise(*, template: str | None = None, vocabulary: Vocabulary | None = None) -> Protocol:
        """The protocol of a chat template, or else of a vocabulary.

        A template is run (in a sandbox, with bounds on its time and its output) on conversations with reasoning,
        content and calls; the protocol is the first of `PROTOCOLS` that reads all of that as it was given, white space
        round texts aside, and whose constraint allows it. Where a template writes no calls, those whose markers it
        describes are tried, or else those that the vocabulary fits.

        Raises:
            ConstraintError: neither is given; jinja2 is not installed (`pip install 'logitree[templates]'`), or the
                template takes no conversation; no protocol reads what it writes, which the message shows; or, without
                a template, the vocabulary fits none or several.
        """
        from ._recognise import recognise

        return recognise(template, vocabulary)

    @staticmethod
    def from_template(template: str, *, vocabulary: Vocabulary | None = None) -> Protocol:
        """The form that a chat template writes, derived from it: for models of a family that has no entry.

        Turns with chosen reasoning, content, calls and arguments are rendered as for `recognise`; markers, separators,
        the style of arguments, ids and numbers of calls are what differs between them. The form is then proved: 100
        random turns that the template writes are read as they were given, white space round texts aside, and allowed.
        A template that writes no calls gives a form without calls.

        Args:
            template: in Jinja, as tokenizers have it.
            vocabulary: its first end-of-generation token is the template's `eos_token`.

        Raises:
            ConstraintError: jinja2 is not installed, or the template has no such form; the message says what does not
                fit.
        """
        from ._derive import from_template

        return from_template(template, vocabulary)

    @staticmethod
    def of(engine: Any) -> Protocol:
        """The protocol of an engine's model: of its chat template as `recognise` finds it, or else as `from_template`
        derives it; without a template, of its vocabulary.

        Raises:
            ConstraintError: as of both; the message says why neither gives one.
        """
        from ._recognise import of

        return of(engine)

    def of_vocabulary(self, vocabulary: Vocabulary | None) -> Protocol:
        """This protocol with the suffix that its markers have in a vocabulary; itself where they have none there.

        Constraints and parsers with a vocabulary do this themselves; a parser of text alone needs it.
        """
        if not self.suffixed or vocabulary is None or is_special(vocabulary, self.markers[0]):
            return self
        stem = self.markers[0][:-1] + ":"
        names = (bytes(vocabulary[id]).decode("utf-8", "replace") for id in vocabulary.search(stem))
        for name in names:
            suffix = name.removeprefix(stem[:-1]).removesuffix(">")
            found = _SUFFIX.fullmatch(suffix) and _with_suffix(self, suffix)
            if found and all(is_special(vocabulary, marker) for marker in found.markers):
                return found
        return self

    def constraint(
        self,
        answer: Any = None,
        *,
        tools: Mapping[str, Any] | Iterable[Any] = (),
        tool_choice: str = "auto",
        parallel: bool = True,
        reasoning: bool | int | None = None,
        begun: bool | None = None,
        **options: Any,
    ) -> ResponseConstraint:
        """A response of this protocol as a constraint: reasoning, then the answer, or tool calls.

        Args:
            answer: what content must be: a constraint, or a value that means one; None: any text. With `tools` the
                response is the answer or calls; without `answer`, text, calls, or text and then calls.
            tools: functions, models, dicts with "name" and "parameters" (as servers' interfaces describe tools), or a
                mapping of names to types or JSON Schemas. Objects have the declared properties and no others.
            tool_choice: "auto"; "required": at least one call and no text; "none"; or the name of a tool, which is
                called once.
            parallel: whether there may be several calls, where the protocol has a form for it.
            reasoning: None: a block of any length may come; True: it must come; a number: it may come, with at most so
                many tokens; 0 or False: no block, and one that the prompt has begun ends at once.
            begun: whether the prompt has begun a block of reasoning; None: as its last token says.
            **options: those of `Grammar.json_schema`, for the arguments of JSON; `numbers` is "plain" unless given.

        Raises:
            ConstraintError: a tool or an option that cannot be honoured. Here, or at `matcher` for what depends on the
                vocabulary.
        """
        from ._constraint import ResponseConstraint

        return ResponseConstraint(
            self,
            answer,
            tools=tools,
            tool_choice=tool_choice,
            parallel=parallel,
            reasoning=reasoning,
            begun=begun,
            options=options,
        )

    def parser(
        self,
        vocabulary: Vocabulary | None = None,
        *,
        prompt: Sequence[int] = (),
        begun: bool | None = None,
        tools: Mapping[str, Any] | Iterable[Any] = (),
    ) -> Parser:
        """An incremental parser at the beginning of a response.

        Args:
            vocabulary: with it the parser takes token ids, and distinguishes a marker from its characters.
            prompt: the prompt's token ids, which may have begun a block of reasoning.
            begun: whether they have; None: as the last of them says.
            tools: as of `constraint`; what arguments that are no JSON mean depends on their schemas.
        """
        from ._parser import Parser
        from ._tools import tools_of

        return Parser(self, vocabulary, prompt=prompt, begun=begun, tools=tools_of(tools))

    def parse(
        self,
        response: str | bytes | Sequence[int],
        vocabulary: Vocabulary | None = None,
        *,
        prompt: Sequence[int] = (),
        begun: bool | None = None,
        tools: Mapping[str, Any] | Iterable[Any] = (),
    ) -> Response:
        """A whole response, as text or token ids, in parts; arguments as of `parser`."""
        parser = self.parser(vocabulary, prompt=prompt, begun=begun, tools=tools)
        parser.feed(response)
        parser.finish()
        return parser.response

    def parts(self, generation: Generation[Any]) -> Response:
        """A generation's response in parts, read from its tokens; runs it to its end."""
        from ._parser import parse_generation

        return parse_generation(self, generation)

    def __str__(self) -> str:
        return self.name


_SUFFIX = re.compile(r":[^\s<>]+")


def is_special(vocabulary: Vocabulary, text: str) -> bool:
    """Whether a text is a control token or an added token."""
    return any(vocabulary.kind(id) in ("control", "user_defined") for id in vocabulary.find(text.encode()))


@lru_cache(maxsize=32)
def _with_suffix(protocol: Protocol, suffix: str) -> Protocol:
    """The protocol with a suffix in each of its markers, wherever they are."""
    markers = re.compile("|".join(map(re.escape, protocol.markers)))

    def rewritten(value: Any) -> Any:
        if isinstance(value, str):
            return markers.sub(lambda found: found[0][:-1] + suffix + ">", value)
        if isinstance(value, tuple):
            return tuple(map(rewritten, value))
        if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{one.name: rewritten(getattr(value, one.name)) for one in fields(value)})
        return value

    made: Protocol = rewritten(protocol)
    return replace(made, suffixed=False)
