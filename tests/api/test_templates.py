"""Chat templates that are run: what hostile ones may use, and which forms are recognised in and derived from them."""

from __future__ import annotations

import sys
import time
import tracemalloc
from types import SimpleNamespace

import pytest

pytest.importorskip("jinja2", reason="jinja2 is not installed")

import logitree as lt
from logitree.protocols import Block, Protocol, _derive, _template, _turns, clear_caches
from logitree.protocols._template import ChatTemplate, TemplateFailed

HELLO = [{"role": "user", "content": "Hello"}]

HOSTILE = {
    "nested loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}"
    "{% endfor %}{% endfor %}{% endfor %}",
    "a filter in a loop": "{% for a in range(99999) %}{% set x = range(99999)|list|map('string')|list|sort %}"
    "{% endfor %}",
    "output": "{% for a in range(99999) %}" + "x" * 1000 + "{% endfor %}",
    "a macro that calls itself twice": "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}"
    "{{ m(60) }}",
    "doubling with ~": "{% set n = namespace(s='xxxx') %}{% for a in range(99) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
    "doubling with +": "{% set n = namespace(s='xxxx') %}{% for a in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}",
    "doubling a list": "{% set n = namespace(s=[1]) %}{% for a in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}",
    "doubling in a block": "{% set s = 'xxxx' %}" + "{% set s %}{{ s }}{{ s }}{% endset %}" * 60 + "{{ s }}",
    "nesting": "{% set n = namespace(s=[1]) %}{% for a in range(99) %}{% set n.s = [n.s, n.s] %}{% endfor %}{{ n.s }}",
    "nesting by append": "{% set n = namespace(s=[1]) %}{% for a in range(99) %}{% set t = [] %}"
    "{{ t.append(n.s) }}{{ t.append(n.s) }}{% set n.s = t %}{% endfor %}{{ n.s }}",
    "a list in itself": "{% set l = [] %}{% for a in range(9) %}{{ l.append(l) }}{% endfor %}{{ l == l|list }}",
    "equality of nests": "{% set a = namespace(s=[1], t=[1]) %}{% for i in range(60) %}{% set a.s = [a.s, a.s] %}"
    "{% set a.t = [a.t, a.t] %}{% endfor %}{{ a.s == a.t }}",
    "times": "{{ 'x' * 9999999999 }}",
    "times a list": "{{ [0] * 999999999 }}",
    "times reversed": "{{ 9999999999 * 'x' }}",
    "a power": "{{ 9 ** 999999999 }}",
    "squares": "{% set n = namespace(s=9) %}{% for a in range(99) %}{% set n.s = n.s * n.s %}{% endfor %}",
    "ljust": "{{ 'x'.ljust(9999999999) }}",
    "center": "{{ 'x'|center(9999999999) }}",
    "indent": "{{ 'x\n'|indent(9999999999) }}",
    "indent of JSON": "{{ [[[]]]|tojson(indent=9999999999) }}",
    "batch": "{{ [1]|batch(99999999, 0)|list }}",
    "slice": "{{ [1]|slice(99999999)|list }}",
    "replace": "{% set x = 'x' * 60000 %}{{ x.replace('x', x) }}",
    "replace by a filter": "{% set x = 'x' * 60000 %}{{ x|replace('x', x) }}",
    "replace by map": "{% set x = 'x' * 60000 %}{{ [x]|map('replace', 'x', x)|list }}",
    "join": "{% set x = 'x' * 60000 %}{{ x.join(x) }}",
    "expandtabs": "{{ ('\t' * 60000).expandtabs(90000) }}",
    "%": "{{ '%999999999d' % 1 }}",
    "% of an argument": "{{ '%*d' % (999999999, 1) }}",
    "format": "{{ '{:999999999}'.format(1) }}",
    "format of an argument": "{{ '{:{}}'.format(1, 999999999) }}",
    "the filter format": "{{ '%999999999d'|format(1) }}",
    "lipsum": "{{ lipsum(n=99999999) }}",
    "range": "{{ range(99999999999)|list }}",
    "attributes": "{{ ''.__class__.__mro__ }}{{ raise_exception.__globals__['open'] }}",
    "a class by a filter": "{{ (''|attr('__class__')).mro() }}",
    "recursion": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
}


@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE)
def test_hostile_templates_end_in_bounded_time_and_memory(source: str) -> None:
    made = ChatTemplate(source)
    began = time.monotonic()
    tracemalloc.start()
    try:
        with pytest.raises(TemplateFailed):
            made.render(HELLO)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert time.monotonic() - began < 4 * _template.SECONDS
    assert peak < 100_000_000


def test_a_template_has_what_transformers_gives_it() -> None:
    source = (
        "{%- for m in messages if m.role == 'user' %}{% generation %}{{ m['content'] }}{% endgeneration %}"
        "{% if loop.first %}{% continue %}{% endif %}{% break %}{% endfor %} "
        '{{ {"a": "<é>", "b": [1, none]}|tojson }}{{ [1]|tojson(indent=2) }}{{ strftime_now("%Y") }}'
    )
    made = ChatTemplate(source).render([{"role": "system", "content": "S"}, *HELLO])
    assert made == 'Hello {"a": "<é>", "b": [1, null]}[\n  1\n]2025'


def test_what_a_template_refuses_is_its_own_message() -> None:
    made = ChatTemplate("{{ raise_exception('roles must alternate') }}")
    with pytest.raises(TemplateFailed, match="roles must alternate"):
        made.render(HELLO)
    with pytest.raises(TemplateFailed, match="TemplateSyntaxError"):
        ChatTemplate("{% if %}")
    with pytest.raises(TemplateFailed, match="characters"):
        ChatTemplate("x" * (_template.MAX_SOURCE + 1))


def test_a_conversation_is_not_changed_by_a_template() -> None:
    messages = [{"role": "user", "content": "Hello", "tags": []}]
    made = ChatTemplate("{{ messages[0].tags.append('x') }}{{ messages[0].tags|length }}")
    assert [made.render(messages), made.render(messages)] == ["None1", "None1"]
    assert messages[0]["tags"] == []


def test_a_template_is_compiled_once() -> None:
    assert _template.compiled("{{ 1 }}") is _template.compiled("{{ 1 }}")
    with pytest.raises(TemplateFailed):
        _template.compiled("{% if %}")


def template(
    call: str, *, between: str = "", before: str = "", after: str = "", think: str = "", content: str = "%"
) -> str:
    """A template in ChatML: `call` for each call `c`, between `before` and `after`; `think` for the reasoning `r`;
    `content` with % for its text."""
    texts = content.replace("%", "{{ m.content }}")
    return (
        "{%- for m in messages %}<|im_start|>{{ m.role ~ '\\n' }}"
        "{%- if m.role == 'assistant' %}"
        + (f"{{%- set r = m.reasoning_content %}}{{%- if r %}}{think}{{% endif %}}" if think else "")
        + f"{{%- if m.content %}}{texts}{{% endif %}}"
        + (
            f"{{%- if m.tool_calls %}}{before}{{%- for t in m.tool_calls %}}{{%- set c = t.function %}}{call}"
            f"{{%- if not loop.last %}}{between}{{% endif %}}{{%- endfor %}}{after}{{%- endif %}}"
            if call
            else ""
        )
        + "{%- else %}{{ m.content }}{%- endif %}<|im_end|>\n{%- endfor %}"
        "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{%- endif %}"
    )


JSON = '{"name": "{{ c.name }}", "arguments": {{ c.arguments|tojson }}}'
THINK = "<think>\n{{ r }}\n</think>\n\n"
HERMES = "{{ '<tool_call>\n' }}" + JSON + "{{ '\n</tool_call>' }}"
KNOWN = {
    "hermes": template(HERMES, between="{{ '\n' }}"),
    "qwen3": template(HERMES, between="{{ '\n' }}", think=THINK),
    "mistral_args": template("[TOOL_CALLS]{{ c.name }}[ARGS]{{ c.arguments|tojson }}"),
    "deepseek_v3_1": template(
        "<｜tool▁call▁begin｜>{{ c.name }}<｜tool▁sep｜>{{ c.arguments|tojson }}<｜tool▁call▁end｜>",
        before="<｜tool▁calls▁begin｜>",
        after="<｜tool▁calls▁end｜>",
        think="<think>{{ r }}</think>",
    ),
    "granite_3": template(JSON, before="<|tool_call|>[", between="{{ ', ' }}", after="]"),
}
PAIRS = (
    "<use {{ c.name }}>{{ '\n' }}{% for k, v in c.arguments|items %}<arg {{ k }}>"
    "{{ v if v is string else v|tojson }}</arg>{{ '\n' }}{% endfor %}</use>"
)
DERIVED = {
    "tags": template("<CALL>" + JSON + "</CALL>", between="{{ '\n' }}", think="<R>{{ r }}</R>{{ '\n' }}"),
    "a list": template(JSON, before="<|acts|>[", between="{{ ', ' }}", after="]<|end_acts|>"),
    "names in tags": template("<f={{ c.name }}>{{ c.arguments|tojson }}</f>"),
    "names as keys": template(
        '{"{{ c.name }}": {{ c.arguments|tojson }}}', before="<|t|>[", between=", ", after="]<|/t|>"
    ),
    "frames": template(
        "<|do|>{{ c.name }} {{ c.arguments|tojson }}<|done|>", content="<|say|>%<|said|>", think="<|r|>{{ r }}<|/r|>"
    ),
    "keys and values": template(PAIRS, between="{{ '\n' }}", think="{{ '\n' }}<R>{{ r }}</R>"),
    "booleans as Python's": template(PAIRS.replace("v|tojson", "(v|tojson if v is iterable else v)")),
    "ids": template("<c>{{ c.name }}<id>{{ t.id }}</id>{{ c.arguments|tojson }}</c>"),
    "ids in objects": template(
        JSON[:-1] + ', "id": "{{ t.id }}"}', before="<calls>[", between="{{ ', ' }}", after="]</calls>"
    ),
    "numbers": template("<c {{ loop.index }}>{{ c.name }}{{ c.arguments|tojson }}</c>", before="<cs>", after="</cs>"),
    "no calls": template(""),
}
"""Forms that are in no table."""


@pytest.mark.parametrize("name", KNOWN)
def test_a_form_is_recognised_by_what_the_template_writes(name: str) -> None:
    assert Protocol.recognise(template=KNOWN[name]) == Protocol.named(name)
    engine = SimpleNamespace(chat_template={"tool_use": KNOWN[name], "default": ""}, vocabulary=bare())
    assert Protocol.of(engine) == Protocol.named(name)


@pytest.mark.parametrize("name", DERIVED)
def test_a_form_is_derived_from_what_the_template_writes(name: str) -> None:
    with pytest.raises(lt.ConstraintError, match="no protocol reads and allows what the chat template writes"):
        Protocol.recognise(template=DERIVED[name])
    engine = SimpleNamespace(chat_template=DERIVED[name], vocabulary=bare())
    protocol = Protocol.of(engine)
    assert protocol == Protocol.from_template(DERIVED[name])
    assert protocol.turn_end == ("<|im_end|>",)
    writer = _turns.written_by(DERIVED[name])
    kinds: set[tuple[bool, bool, int]] = set()
    for turn in _derive.random_turns(writer, 30, protocol.markers, seed=1):
        assert turn.mismatch(protocol, _turns.probe_tools()) == ""
        assert turn.refusal(protocol, _turns.probe_tools()) == ""
        kinds.add((turn.reasoning is not None, bool(turn.content), len(turn.calls)))
    assert {calls for _, _, calls in kinds} == ({0} if name == "no calls" else {0, 1, 3})


def bare() -> lt.Vocabulary:
    return lt.Vocabulary.from_tokens([bytes([b]) for b in range(256)] + [b"</s>"], end_tokens=[256])


def test_a_derived_form_is_a_protocol_like_every_other() -> None:
    made = Protocol.from_template(DERIVED["tags"])
    assert made.reasoning == Block("<R>", "</R>", "\n")
    assert made.calls is not None
    assert (made.calls.head, made.calls.tail) == ('<CALL>{"name": "', "}</CALL>")
    assert set(made.markers) == {"<R>", "</R>", "<CALL>", "</CALL>"}
    words = [*made.markers, "<|im_end|>"]
    tokens = [bytes([b]) for b in range(256)] + [word.encode() for word in words]
    vocabulary = lt.Vocabulary.from_tokens(tokens, kinds=["normal"] * 256 + ["control"] * 5, end_tokens=[260])
    tools = {"f": {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}}
    constraint = made.constraint(tools=tools, tool_choice="required", reasoning=0)
    matcher = constraint.matcher(vocabulary)
    assert vocabulary.decode(matcher.forced_tokens(), skip_special=False) == b'<CALL>{"name": "f", "arguments": {'


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (template("<t>{{ c.name }}({{ c.arguments|length }})</t>"), "neither JSON nor keys and values"),
        (template("{{ c.name }}{{ c.arguments|tojson }}"), "no beginning of their own"),
        (template("<t>{{ c.name }} {{ c.name }}{{ c.arguments|tojson }}</t>"), "its name 2 times"),
        (template("<t>" + JSON.replace("tojson", "replace('city', 'town')|tojson") + "</t>"), "derived from the chat"),
        ("{{ raise_exception('only images') }}", "only images"),
        ("{% if %}", "TemplateSyntaxError"),
    ],
)
def test_what_is_no_form_is_refused(source: str, said: str) -> None:
    with pytest.raises(lt.ConstraintError, match=said):
        Protocol.from_template(source)
    with pytest.raises(lt.ConstraintError):
        Protocol.of(SimpleNamespace(chat_template=source, vocabulary=bare()))


def test_a_form_that_loses_a_part_is_not_chosen() -> None:
    """Calls are hermes' own, and what is before them is no block of any protocol."""
    source = template(HERMES, between="{{ '\n' }}", think="<thought>{{ r }}</thought>")
    with pytest.raises(lt.ConstraintError, match="hermes: the content was read as '<thought>"):
        Protocol.recognise(template=source)
    assert Protocol.from_template(source).reasoning == Block("<thought>", "</thought>")


def test_a_template_without_calls_has_the_form_that_the_vocabulary_says() -> None:
    words = ["<|im_start|>", "<tool_call>"]
    tokens = [bytes([b]) for b in range(256)] + [word.encode() for word in words]
    vocabulary = lt.Vocabulary.from_tokens(tokens, kinds=["normal"] * 256 + ["control"] * 2)
    assert Protocol.recognise(template=DERIVED["no calls"], vocabulary=vocabulary).name == "hermes"
    described = "{# <tool_call> </tool_call> #}" + DERIVED["no calls"]
    assert Protocol.recognise(template=described).name == "hermes"


def test_without_jinja2_nothing_is_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    _template._environment_class.cache_clear()
    clear_caches()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    for find in (Protocol.recognise, lambda template: Protocol.from_template(template)):
        with pytest.raises(lt.ConstraintError, match=r"jinja2 is not installed.*logitree\[templates\]"):
            find(template=KNOWN["hermes"])


def test_a_template_is_run_once_for_a_model() -> None:
    Protocol.recognise(template=KNOWN["qwen3"])
    began = time.perf_counter()
    for _ in range(100):
        Protocol.recognise(template=KNOWN["qwen3"])
    assert time.perf_counter() - began < 1
    kept = _turns.written_by(KNOWN["qwen3"])
    assert _turns.written_by(KNOWN["qwen3"]) is kept
    clear_caches()
    assert _turns.written_by(KNOWN["qwen3"]) is not kept
