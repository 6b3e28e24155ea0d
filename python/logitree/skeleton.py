"""Skeletons: whole responses of fixed text and values, whose spans begin and end by themselves.

```python
from logitree import skeleton as sk

plan = logitree.Skeleton.object({
    "action": sk.enum(["SEND", "IGNORE"]),
    "parameters": sk.by("action", {"SEND": sk.object({"to": str, "urgent": bool}), "IGNORE": sk.object({})}),
    "thought": sk.string(max_length=80),
})
logitree.generate(model, prompt, plan).value
```
"""

from __future__ import annotations

import json as _json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from . import _core, _schemas
from ._constraint import Context, Tokenize
from ._core import Constraint
from ._errors import error
from ._spans import SpanInfo, SpanStream, SpanValue, values_of

__all__ = [
    "Skeleton",
    "SpanInfo",
    "SpanValue",
    "Value",
    "array",
    "boolean",
    "by",
    "constant",
    "enum",
    "json",
    "literal",
    "number",
    "object",
    "string",
]

Sampler = _core.Chain | Mapping[str, Any]
"""A chain, or parameters that the generation's own chain has in a span: ``{"temperature": 0.2, "top_k": 5}``."""

Form = dict[str, Any]


@dataclass(frozen=True)
class Value:
    """What fills a place of a skeleton. The functions of this module make it."""

    write: Callable[[str, str], list[Form]]
    """The spans in the JSON form, for the value's key and the keys' common beginning."""
    key: str = ""
    """The value's key; empty: none."""

    def named(self, key: str) -> Value:
        """The same, with a key: for skeletons that are no objects."""
        return replace(self, key=key)


def literal(text: str) -> Value:
    """Fixed text, as it is written."""
    return Value(lambda key, within: [{"kind": "literal", "value": text}])


def enum(values: Iterable[Any], *, sampler: Sampler | None = None) -> Value:
    """One of some texts, numbers, booleans or None. Without a sampler the likeliest is taken at each token."""
    return _value("enum", {"enumValues": [_scalar(value) for value in values]}, sampler)


def constant(value: Any) -> Value:
    """This text, number, boolean or None: an enum of one value."""
    return enum([value])


def number(
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    integer: bool = False,
    schema: Mapping[str, Any] | None = None,
    sampler: Sampler | None = None,
) -> Value:
    """A number. `schema` has further keywords of JSON Schema. Without a sampler the likeliest token is taken."""
    fields: Form = dict(schema or {})
    if integer:
        fields["type"] = "integer"
    fields.update({name: given for name, given in (("minimum", minimum), ("maximum", maximum)) if given is not None})
    return _value("number", {"schema": fields} if fields else {}, sampler)


def boolean(*, sampler: Sampler | None = None) -> Value:
    """true or false. Without a sampler the likeliest token is taken."""
    return _value("boolean", {}, sampler)


def string(
    *,
    min_length: int | None = None,
    max_length: int | None = None,
    pattern: str | None = None,
    schema: Mapping[str, Any] | None = None,
    sampler: Sampler | None = None,
) -> Value:
    """A text of so many characters. `schema` has further keywords of JSON Schema, such as `format`."""
    fields: Form = dict(schema or {})
    given = (("minLength", min_length), ("maxLength", max_length), ("pattern", pattern))
    fields.update({name: one for name, one in given if one is not None})
    return _value("free-string", {"schema": fields} if fields else {}, sampler)


def json(schema: Any = True, *, sampler: Sampler | None = None) -> Value:
    """JSON under a schema, any JSON without one: a mapping, a boolean, or a type or model that has a schema."""
    if not isinstance(schema, Mapping | bool):
        schema = _schemas.schema_of(schema)
    return _value("free-json", {} if schema is True else {"schema": schema}, sampler)


def array(item: Any, *, min_items: int = 0, max_items: int | None = None) -> Value:
    """A list of so many items, each of them this value."""
    inner = _value_of(item)

    def write(key: str, within: str) -> list[Form]:
        span: Form = {"kind": "array", "items": inner.write("", "")}
        if key:
            span["key"] = key
        if min_items:
            span["minItems"] = min_items
        if max_items is not None:
            span["maxItems"] = max_items
        return [span]

    return Value(write)


def object(fields: Mapping[str, Any]) -> Value:
    """A JSON object with exactly these fields, in this order, written without white space.

    A field is a `Value`, or what means one: `str`, `int`, `float`, `bool`; a list of texts or numbers, a
    choice; a mapping, an object in the object; a text, a number, a boolean or None, that constant. A JSON Schema is
    written `json(schema)`.
    """
    read = {name: _value_of(field) for name, field in fields.items()}
    for name in read:
        if not name or any(sign in name for sign in ".[]"):
            message = f"the field {name!r} cannot be part of a path"
            raise error(_core.ConstraintError, message, help="write it as a literal, or the object as json(schema)")

    def write(key: str, within: str) -> list[Form]:
        spans: list[Form] = []
        between = "{"
        own = f"{key}." if key else ""
        for name, field in read.items():
            spans.append({"kind": "literal", "value": f"{between}{_json.dumps(name, ensure_ascii=False)}:"})
            spans += field.write(own + name, own)
            between = ","
        spans.append({"kind": "literal", "value": "}" if read else "{}"})
        return [{"kind": "object", "key": key, "spans": spans}] if key else spans

    return Value(write)


def by(key: str, cases: Mapping[Any, Any], default: Any = None) -> Value:
    """The value that an earlier enum of the same object selects.

    Args:
        key: the enum's name in the object.
        cases: what comes for each of the enum's values: values of this module, or what means one.
        default: what comes for values without a case; None: each value needs one.
    """
    read = {
        value if isinstance(value, str) else _json.dumps(_scalar(value)): _value_of(c) for value, c in cases.items()
    }
    otherwise = None if default is None else _value_of(default)

    def write(own: str, within: str) -> list[Form]:
        span: Form = {
            "kind": "switch",
            "on": within + key,
            "cases": {value: case.write(own, within) for value, case in read.items()},
        }
        if otherwise is not None:
            span["default"] = otherwise.write(own, within)
        return [span]

    return Value(write)


def _value(kind: str, fields: Form, sampler: Sampler | None) -> Value:
    def write(key: str, within: str) -> list[Form]:
        span: Form = {"kind": kind, **({"key": key} if key else {}), **fields}
        if sampler is not None:
            span["sampler"] = sampler if isinstance(sampler, _core.Chain) else dict(sampler)
        return [span]

    return Value(write)


def _scalar(value: Any) -> Any:
    """A value that an enum may have: that of an enum's member, too."""
    value = getattr(value, "value", value) if not isinstance(value, str | int | float) else value
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise TypeError(f"an enum's values are texts, numbers, booleans or None, not {type(value).__name__}")


_PLAIN: dict[Any, Callable[[], Value]] = {
    str: string,
    int: lambda: number(integer=True),
    float: number,
    bool: boolean,
}


def _value_of(given: Any) -> Value:
    """The value that this means.

    Raises:
        TypeError: it means none.
    """
    if isinstance(given, Value):
        return given
    if isinstance(given, type) and given in _PLAIN:
        return _PLAIN[given]()
    if isinstance(given, Mapping):
        return object(given)
    if given is None or isinstance(given, str | bool | int | float):
        return constant(given)
    if isinstance(given, Sequence | set | frozenset) or (isinstance(given, type) and hasattr(given, "__members__")):
        members = sorted(given, key=repr) if isinstance(given, set | frozenset) else given
        return enum(cast(Iterable[Any], members))
    raise TypeError(
        f"{given!r} means no value of a skeleton: give str, int, float, bool, a list of values, a mapping of fields, "
        "or what logitree.skeleton makes; a model or another type as skeleton.json(type)"
    )


class Skeleton(Constraint):
    """A whole response: fixed text, and values whose beginnings and ends the decoder finds.

    ```python
    logitree.Skeleton.object({"action": ["SEND", "IGNORE"], "reason": skeleton.string(max_length=80)})
    logitree.Skeleton('{"action":"', skeleton.enum(["SEND", "IGNORE"]).named("action"), '"}')
    ```

    A text is written as it is. Values are JSON values: with quotes, or inside of a string that the text before has
    opened, without. `Generation.value` is a dict of the values by their keys, `Generation.spans` lists the spans, and
    the events of a generation have each span's beginning, text and value. Where a text could be read in several ways,
    each span in order is the longest possible.

    Raises:
        PayloadError, ConstraintError, LimitError: with the place, such as `spans[3].enumValues`.
    """

    __slots__ = ("_chains", "_plan", "_prefill", "_program", "_samplers", "_tree", "spans")

    spans: tuple[SpanInfo, ...]
    """What is known of each span: those of the outermost list by position, then the nested ones."""

    def __init__(self, *parts: str | Value, id: str | None = None) -> None:
        spans: list[Form] = []
        for part in parts:
            value = literal(part) if isinstance(part, str) else part
            if not isinstance(value, Value):
                raise TypeError(f"a part of a skeleton is a text or a value, not {type(value).__name__}")
            spans += value.write(value.key, "")
        self._of({"spans": spans, **({} if id is None else {"id": id})})

    def _of(self, form: Form | str) -> Skeleton:
        chains: list[_core.Chain] = []
        text = form if isinstance(form, str) else _json.dumps(_without_chains(form, chains), ensure_ascii=False)
        self._program = _core.SkeletonProgram(text)
        self.spans = tuple(
            SpanInfo(number, kind, path, greedy, in_string, tuple(map(_json.loads, values)))
            for number, (kind, path, greedy, in_string, values, _) in enumerate(self._program.spans())
        )
        self._samplers: dict[int, Any] = {}
        for number, (*_, sampler) in enumerate(self._program.spans()):
            if sampler is not None:
                self._samplers[number] = _sampler(_json.loads(sampler), chains, self._place(number))
        self._tree: _core.TokenTree | None = None
        self._prefill = False
        self._plan: Form | None = None
        return self

    @classmethod
    def object(cls, fields: Mapping[str, Any], *, id: str | None = None) -> Skeleton:
        """A response that is a JSON object: `logitree.skeleton.object` says what fields are."""
        return cls(object(fields), id=id)

    @classmethod
    def from_json(cls, form: str | bytes | Mapping[str, Any]) -> Skeleton:
        """Reads the JSON form: `{spans: [{kind, key?, value?, enumValues?, rule?}], id?}`.

        docs/skeletons.md lists this library's additions.
        """
        if isinstance(form, bytes):
            form = form.decode()
        if not isinstance(form, str | Mapping):
            raise TypeError(f"a skeleton's form is a text or a dict, not {type(form).__name__}")
        return cls.__new__(cls)._of(form if isinstance(form, str) else dict(form))

    def to_json(self) -> dict[str, Any]:
        """The JSON form as a dict.

        Raises:
            ConstraintError: a span has a chain for its sampler, which JSON cannot write.
        """
        form: dict[str, Any] = _json.loads(self._program.form())
        for number, sampler in self._samplers.items():
            if isinstance(sampler, _core.Chain):
                help = 'give parameters: sampler={"temperature": 0.2}'
                message = "the sampler of a span is a chain, which JSON cannot write"
                raise error(_core.ConstraintError, message, place=self._place(number), help=help)
        return form

    def attach(self, tree: _core.TokenTree) -> Skeleton:
        """The same, with only a token tree's token lists in the enums at its paths, such as "action" or "contexts[]".

        Raises:
            ConstraintError: at `matcher`: a path is no enum's, or no leaf spells a value of it.
        """
        made = self._copy()
        made._tree = tree
        return made

    def prefill(self, plan: Mapping[str, Any] | None = None) -> Skeleton:
        """The same, with the runs of fixed text in certain tokens, which need no forward passes.

        Args:
            plan: a prefill plan `{prefix, runs: [{after_free_span, text, token_ids}], free_count, id}` of this
                skeleton; None: each run as the engine's own tokeniser spells it.

        Raises:
            ConstraintError: the plan is of another skeleton; at `matcher`: tokens do not spell a run, or without a
                plan no tokeniser is known.
        """
        made = self._copy()
        made._prefill, made._plan = True, None if plan is None else dict(plan)
        if plan is not None:
            made._check_plan(plan)
        return made

    def sampled(self, samplers: Mapping[Any, Any]) -> Skeleton:
        """The same, with these samplers.

        Args:
            samplers: chains or parameters by path or number, such as `{"thought": {"temperature": 1.0}}`; or a span
                sampler plan, `{overrides: [{span_index, temperature, top_k?, top_p?}]}`.

        Raises:
            ConstraintError: no span that is sampled has the path or number.
        """
        made = self._copy()
        if "overrides" in samplers:
            for at, given in enumerate(samplers["overrides"]):
                params = {name: one for name, one in given.items() if name != "span_index" and one is not None}
                made._set(given.get("span_index"), params, f"overrides[{at}]")
        else:
            for key, sampler in samplers.items():
                made._set(key, sampler, repr(key))
        return made

    def prefill_plan(self, tokenize: Tokenize | None = None) -> dict[str, Any] | None:
        """The runs of fixed text, with their tokens where a tokeniser is given; None if there are none."""
        made: dict[str, Any] | None = _core.prefill_plan(self._program.form(), tokenize)
        return made

    def span_sampler_plan(self) -> dict[str, Any]:
        """The spans of the outermost list in which the likeliest token is taken, or another sampler is set."""
        overrides = []
        outermost = len(_json.loads(self._program.form())["spans"])
        for span in self.spans[:outermost]:
            sampler = self._samplers.get(span.number)
            if isinstance(sampler, dict):
                known = {_ALIASES.get(name, name): value for name, value in sampler.items()}
                overrides.append({"span_index": span.number, **known})
            elif sampler is None and span.greedy:
                overrides.append({"span_index": span.number, "temperature": 0.0, "top_k": 1})
        return {"overrides": overrides}

    def matcher(self, vocabulary: _core.Vocabulary, /) -> _core.Matcher:
        """A matcher at the beginning of the response.

        Raises:
            ConstraintError, LimitError: it cannot be honoured with this vocabulary.
        """
        return self.bind(Context(vocabulary))

    def bind(self, context: Context) -> _core.Matcher:
        """As `matcher`, with the engine's tokenisation of the runs."""
        tokens = self._run_tokens(context.tokenize) if self._prefill else None
        made: _core.Matcher = self._program.matcher(context.vocabulary, self._tree, tokens)
        return made

    def form(self) -> str:
        """As `Constraint.form`, without the samplers of spans.

        Raises:
            ConstraintError: an engine tokenises its fixed text, or it has a token tree.
        """
        if self._tree is not None or (self._prefill and self._plan is None):
            help = "leave out prefill() and the tree"
            raise error(_core.ConstraintError, "a skeleton with tokens of an engine has no JSON form", help=help)
        made: Form = {"type": "skeleton", "skeleton": _json.loads(self._program.form())}
        if self._prefill:
            made["run_tokens"] = self._run_tokens(None)
        return _json.dumps(made)

    def span_chains(self, chain: _core.Chain) -> dict[int, _core.Chain]:
        """The chains of spans that have a sampler, by number, for a generation with this chain.

        Greedy spans without a sampler are the decoder's business.
        """
        made = {}
        for number, sampler in self._samplers.items():
            if isinstance(sampler, _core.Chain):
                made[number] = sampler
            elif float(sampler.get("temperature", sampler.get("temp", 1.0))) <= 0.0:
                made[number] = _core.Chain.greedy()
            else:
                made[number] = own = chain.fork()
                own.set(**sampler)
        return made

    def span_stream(self) -> SpanStream:
        """What turns tokens and marks of one output into events."""
        return SpanStream(self.spans)

    def parse(self, text: str) -> tuple[SpanValue, ...]:
        """The spans of a whole response.

        Raises:
            TokenError: the text is none of this skeleton's, with the byte. Values under a schema are read by their
                structure only: `matches` checks them.
            IncompleteError: the text is cut off.
        """
        data = text.encode()
        marks, complete = self._program.read(data)
        stream = self.span_stream()
        stream.feed(data, marks)
        if not complete:
            from ._errors import IncompleteError

            raise IncompleteError("the response is cut off", place=repr(text[-40:]))
        return tuple(stream.ended)

    def matches(self, text: str) -> bool:
        """Whether this is a whole response."""
        return bool(self.grammar.matches(text))

    def value(self, text: str, tokens: Sequence[int] = ()) -> dict[str, Any]:
        """The values of a whole response by key; keys with dots are nested."""
        return values_of(self.parse(text))

    @property
    def grammar(self) -> _core.Grammar:
        """The texts of this skeleton as a grammar, which has no spans."""
        made: _core.Grammar = self._program.grammar()
        return made

    @property
    def is_prefilled(self) -> bool:
        """Whether the tokens of its fixed text are given or the engine's: see `prefill`."""
        return self._prefill

    @property
    def is_text(self) -> bool:
        """Whether it says what text may come and nothing of its tokens: nothing is prefilled, no tree attached."""
        return not self._prefill and self._tree is None

    @property
    def id(self) -> str | None:
        """Its maker's name for it."""
        named: str | None = _json.loads(self._program.form()).get("id")
        return named

    def _copy(self) -> Skeleton:
        made = Skeleton.__new__(Skeleton)
        made._program, made.spans = self._program, self.spans
        made._samplers = dict(self._samplers)
        made._tree, made._prefill, made._plan = self._tree, self._prefill, self._plan
        return made

    def _place(self, number: int) -> str:
        path = self.spans[number].path if number < len(self.spans) else ""
        return f"spans[{number}]" + (f" {path!r}" if path else "")

    def _set(self, key: Any, sampler: Any, place: str) -> None:
        sampled = [span for span in self.spans if span.kind not in _AROUND]
        if isinstance(key, int) and not isinstance(key, bool):
            numbers = [span.number for span in sampled if span.number == key]
        else:
            numbers = [span.number for span in sampled if span.path and span.path == key]
        if not numbers:
            paths = ", ".join(sorted({repr(span.path) for span in sampled if span.path}))
            message = f"no span that is sampled is {key!r}"
            raise error(_core.ConstraintError, message, place=place, help=f"the paths: {paths}")
        for number in numbers:
            self._samplers[number] = _checked(sampler, place)

    def _check_plan(self, plan: Mapping[str, Any]) -> None:
        """A plan must be that of this skeleton."""
        own = self.prefill_plan()

        def runs(of: Mapping[str, Any] | None) -> list[tuple[int, str]]:
            return [(run["after_free_span"], run["text"]) for run in (of or {}).get("runs", ())]

        if runs(own) != runs(plan) or plan.get("free_count", own and own["free_count"]) != (own and own["free_count"]):
            message = "the prefill plan is of another skeleton"
            raise error(_core.ConstraintError, message, place="runs", help="make it with Skeleton.prefill_plan")
        for at, run in enumerate(plan["runs"]):
            if run.get("token_ids") is None:
                message = "a run of the prefill plan has no tokens"
                help = "make it with a tokeniser: skeleton.prefill_plan(tokenize), or prefill() without a plan"
                raise error(_core.ConstraintError, message, place=f"runs[{at}].token_ids", help=help)

    def _run_tokens(self, tokenize: Tokenize | None) -> list[list[int] | None]:
        runs = self._program.runs()
        if self._plan is not None:
            given = iter(self._plan["runs"])
            return [list(next(given)["token_ids"]) if outermost and text else None for text, outermost in runs]
        if tokenize is None:
            help = "give a plan with tokens, or generate with an engine that has a tokeniser"
            raise error(_core.ConstraintError, "prefill() knows no tokeniser", help=help)
        return [list(tokenize(text)) if text else None for text, _ in runs]

    def _key(self) -> tuple[Any, ...]:
        samplers = tuple(sorted((number, repr(sampler)) for number, sampler in self._samplers.items()))
        return (self._program.form(), samplers, self._prefill, repr(self._plan), _id_of(self._tree))

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Skeleton) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._program.form())

    def __reduce__(self) -> tuple[Any, ...]:
        if self._tree is not None:
            raise TypeError("a skeleton with a token tree cannot be pickled: attach the tree again after reading")
        return _restored, (self._program.form(), self._samplers, self._prefill, self._plan)

    def __repr__(self) -> str:
        keys = [span.path or span.kind for span in self.spans if span.kind not in ("literal", "switch")]
        shown = ", ".join(keys[:6]) + (", ..." if len(keys) > 6 else "")
        return f"Skeleton({shown})"


def _id_of(tree: _core.TokenTree | None) -> int | None:
    """A number that is the same for the same tree."""
    return None if tree is None else id(tree)


def _restored(form: str, samplers: dict[int, Any], prefill: bool, plan: Form | None) -> Skeleton:
    """A skeleton from a pickle."""
    made = Skeleton.from_json(form)
    made._samplers, made._prefill, made._plan = samplers, prefill, plan
    return made


_AROUND = ("literal", "object", "array", "switch")
"""Kinds of spans that are not sampled themselves."""

_ALIASES = {"temp": "temperature"}
_CHAIN = "~chain"


def _without_chains(value: Any, chains: list[_core.Chain]) -> Any:
    """A form with numbers in place of chains."""
    if isinstance(value, _core.Chain):
        chains.append(value)
        return {_CHAIN: len(chains) - 1}
    if isinstance(value, Mapping):
        return {name: _without_chains(inner, chains) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_chains(inner, chains) for inner in value]
    return value


def _sampler(read: Any, chains: list[_core.Chain], place: str) -> Any:
    """A sampler of a form: parameters, or the chain that was there."""
    if isinstance(read, dict) and _CHAIN in read and chains:
        return chains[read[_CHAIN]]
    return _checked(read, place)


def _checked(sampler: Any, place: str) -> Any:
    """A chain, or parameters that a chain of llama.cpp's has."""
    if isinstance(sampler, _core.Chain):
        return sampler
    if not isinstance(sampler, Mapping):
        raise TypeError(f"a sampler is a Chain or parameters, not {type(sampler).__name__}")
    known = dict(sampler)
    wrong = [name for name, one in known.items() if isinstance(one, bool) or not isinstance(one, int | float)]
    if wrong:
        raise error(_core.SamplingError, f"{wrong[0]} of a span's sampler is no number", place=place)
    _core.Chain.llama_cpp(seed=0, **known)
    return known
