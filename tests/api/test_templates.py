"""Chat templates that are run: what hostile ones may use, and what rendering gives."""

from __future__ import annotations

import time
import tracemalloc

import pytest

pytest.importorskip("jinja2", reason="jinja2 is not installed")

from logitree.protocols import _template
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
