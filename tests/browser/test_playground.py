"""The playground in a headless Chromium, served with SmolLM2: generating, errors in the editor, branches, the tree of
what may come, two outputs, links, keys, and what axe finds.

Skipped where no Chromium is installed (Debian: `apt-get install chromium`). `LOGITREE_SCREENSHOTS` names a folder that
the pictures are written to.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from browser import Browser
from logitree.engines import Engine

for _module in ("starlette", "uvicorn", "httpx", "prometheus_client"):
    pytest.importorskip(_module, reason=f"{_module} is not installed")

from servers import serving  # noqa: E402

READY = "document.documentElement.dataset.ready"
SAID = "document.querySelector('#status').textContent"
OUTPUT = "[...document.querySelectorAll('#a-text [role=option]')]"
TEXT = "document.querySelector('#a-details .copy')?.textContent"
"""Undefined until the overview shows it."""


@pytest.fixture(scope="module")
def address(engine: Engine) -> Iterator[str]:
    with serving(engine, places=2) as client:
        yield str(client.base_url).rstrip("/") + "/"


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Browser]:
    """The playground, wide and light; afterwards it has complained of nothing, and asked no other server."""
    browser.view(1360, 900)
    browser.requests.clear()
    browser.complaints.clear()
    browser.open(address, READY)
    browser.run("document.querySelector('#a-seed').value = '7'")
    yield browser
    assert browser.complaints == []
    assert [one for one in browser.requests if not one.startswith((address, "blob:", "data:"))] == []


def generated(page: Browser) -> str:
    """The text of an output, after the button was pressed."""
    page.click("#run")
    return finished(page)


def finished(page: Browser) -> str:
    """The text of the output, when it is over."""
    page.wait(f"document.querySelector('#stop').disabled && {SAID} !== 'Generating …'")
    # Picking nothing shows the overview, which has the plain text.
    page.run("document.querySelector('#a-details [aria-label=\"Close the details\"]')?.click()")
    page.run("document.querySelector('#a-details details').open = true")
    page.wait(TEXT + " !== undefined")
    page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return str(page.run(TEXT))


def written(page: Browser, kind: str, text: str) -> None:
    """Chooses a constraint and writes its text."""
    page.run(
        f"""(() => {{ const kind = document.querySelector("#a-constraint"), text = document.querySelector("#a-editor");
        kind.value = {json.dumps(kind)}; kind.dispatchEvent(new Event("change"));
        text.value = {json.dumps(text)}; text.dispatchEvent(new Event("input")); }})()"""
    )


def test_an_output_obeys_its_constraint(page: Browser) -> None:
    text = generated(page)
    person = json.loads(text)
    assert set(person) == {"name", "age", "likes"}
    assert person["likes"] in ("tea", "coffee", "neither")
    assert page.run(SAID).startswith("The output is complete: ")
    assert re.search(r"\d+ saved\.$", page.run(SAID))
    tokens = page.run(f"{OUTPUT}.length")
    assert page.run("document.querySelector('.pane .stats dd').textContent") == str(tokens)
    assert "Canonical" in page.run("document.querySelector('#a-sources').innerText")
    assert generated(page) == text  # the same seed


@pytest.mark.parametrize(
    ("kind", "text", "pattern"),
    [
        ("regex", "[a-c]{2}-[0-9]{3}", r"[a-c]{2}-[0-9]{3}"),
        ("choices", "one\ntwo words\n", r"one|two words"),
        ("gbnf", 'root ::= "a" "b"{2,3}', r"abb+"),
        ("lark", "start: /x[0-9]/", r"x[0-9]"),
        ("json", "", None),
        ("skeleton", '{"spans": [{"kind": "literal", "value": "n: "}, {"kind": "number"}]}', r"n: .+"),
        ("form", '{"type": "at_least", "of": {"type": "regex", "pattern": "[a-z]{4}"}, "n": 1}', r"[a-z]{4}"),
    ],
)
def test_every_kind_of_constraint(page: Browser, kind: str, text: str, pattern: str | None) -> None:
    written(page, kind, text)
    page.run("(i => { i.value = 30; i.dispatchEvent(new Event('input')) })(document.querySelector('#a-max_tokens'))")
    found = generated(page)
    assert "constraint" not in page.run(SAID)
    if pattern is not None:
        assert re.fullmatch(pattern, found), found


def test_every_example_works(page: Browser) -> None:
    for name in page.run("[...document.querySelectorAll('#preset option')].map((e) => e.textContent)"):
        choose = "(e => { e.value = %s; e.dispatchEvent(new Event('change')) })(document.querySelector('#preset'))"
        page.run(choose % json.dumps(name))
        page.run(
            "(i => { i.value = 40; i.dispatchEvent(new Event('input')) })(document.querySelector('#a-max_tokens'))"
        )
        assert generated(page), name
        assert page.run(SAID).startswith("The output is "), name


@pytest.mark.parametrize(
    ("kind", "text", "marked"),
    [
        ("json_schema", '{"type": "object",\n "properties": {"a": {"type": "text"}}}', '"text"'),
        ("json_schema", '{"type": "x",}', "}"),
        ("json_schema", '{"properties": {"a/b~ é": {"type": "x"}, "c": [1, {"d": "e\\""}]}}', '"x"'),
        ("regex", "ab(c", "("),
        ("gbnf", 'root ::= "é" a\na ::= [0-9\n', "["),
        ("gbnf", 'root ::= "é" aa\n', "a"),
        ("lark", "start: A\nA: /[/\n", "/"),
        ("form", '{"type": "sequence", "of": [}', None),
        ("form", '{"type": "nothing of ours"}', None),
    ],
)
def test_errors_are_marked_where_they_are(page: Browser, kind: str, text: str, marked: str | None) -> None:
    written(page, kind, text)
    page.wait("document.querySelector('#a-wrong').textContent")
    assert page.run("document.querySelector('#a-editor').hasAttribute('aria-invalid')")
    if marked is not None:
        assert page.run("document.querySelector('.ground mark').textContent") == marked
    assert page.run("document.querySelector('.ground').textContent").startswith(text)
    page.click("#run")  # the same error, as a sentence
    page.wait(f"document.querySelector('#stop').disabled && {SAID} !== 'Generating …' && {SAID} !== ''")
    assert page.run(f"{OUTPUT}.length") == 0
    written(page, kind, {"json_schema": "{}", "form": '{"type": "json"}'}.get(kind, "x"))
    assert page.run("document.querySelector('#a-wrong').textContent") == ""
    browser_noise(page)


def browser_noise(page: Browser) -> None:
    """Chromium itself notes answers with status 400."""
    page.complaints[:] = [one for one in page.complaints if "status of 400" not in one]


def test_a_token_is_replaced_and_the_outputs_are_a_tree(page: Browser) -> None:
    written(page, "regex", "(red|green|blue) and (red|green|blue)")
    first = generated(page)
    assert page.run("document.querySelector('.outputs').hidden")
    page.click("#a-t0")
    page.run("document.querySelector('#a-alternatives td.alt button').click()")
    second = finished(page)
    assert re.fullmatch("(red|green|blue) and (red|green|blue)", second)
    assert second.split()[0] != first.split()[0]
    assert page.run("[...document.querySelectorAll('.twig')].length") == 2
    assert "given" in page.run("document.querySelector('#a-t0').ariaLabel")
    page.click(".twig:nth-of-type(1)")
    assert page.run(f"{OUTPUT}.map((e) => e.textContent).join('')").replace("↵", "") == first
    assert page.run("document.querySelectorAll('.twig')[0].getAttribute('aria-pressed')") == "true"
    # Text of one's own, and then the rest drawn again.
    page.click("#a-t0")
    page.run("document.querySelector('.replace input').value = 'blue'")
    page.run("document.querySelector('.replace button[type=submit]').click()")
    page.wait("document.querySelectorAll('.twig').length === 3")
    assert finished(page).startswith("blue and ")
    page.click("#a-t0")
    page.run("document.querySelector('.replace button[type=button]').click()")
    finished(page)
    assert page.run("[...document.querySelectorAll('.twig')].length") == 4
    # Text that the constraint does not allow is no branch.
    page.click("#a-t0")
    page.run("document.querySelector('.replace input').value = 'purple'")
    page.run("document.querySelector('.replace button[type=submit]').click()")
    page.wait(f"/not allowed/.test({SAID})")
    assert page.run("[...document.querySelectorAll('.twig')].length") == 4
    browser_noise(page)


def test_the_tree_of_what_may_come_is_walked(page: Browser) -> None:
    written(page, "regex", "ab[0-9]|abc|x")
    page.run("document.querySelector('.next').open = true")
    page.wait("document.querySelector('.trie li')")
    page.wait("document.querySelector('.trie .help').textContent !== '49,152 tokens allowed'")
    rows = "[...document.querySelectorAll('.trie .path')].map((e) => e.textContent)"
    assert page.run(rows) == ["ab", "x"]
    page.run("document.querySelector('.trie .open').click()")
    page.wait("document.querySelector('.trie .inner ul')")
    page.run("[...document.querySelectorAll('.trie button')].find((e) => e.ariaLabel === 'Take ab').click()")
    text = finished(page)
    assert re.fullmatch("ab[0-9]|abc", text)
    page.wait("/complete/.test(document.querySelector('.trie').textContent)")


def test_two_outputs_side_by_side_and_a_link(page: Browser, address: str) -> None:
    page.click("#compare")
    assert page.run("document.querySelectorAll('.pane').length") == 2
    written(page, "choices", "yes\nno")
    page.run("(e => { e.value = 'é, 漢'; })(document.querySelector('.message textarea'))")
    page.click("#run")
    page.wait(f"document.querySelector('#stop').disabled && {SAID} !== 'Generating …'")
    both = page.run("['a', 'b'].map((p) => document.querySelectorAll(`#${p}-text [role=option]`).length)")
    assert both[0] >= 1
    assert both[1] > 5
    page.click("#share")
    link = page.run("location.href")
    assert "#s=" in link
    page.open(link, READY)
    assert page.run("document.querySelectorAll('.pane').length") == 2
    assert page.run("document.querySelector('.message textarea').value") == "é, 漢"
    assert page.run("['a', 'b'].map((p) => document.querySelector(`#${p}-constraint`).value)") == [
        "choices",
        "json_schema",
    ]
    assert page.run("document.querySelector('#a-editor').value") == "yes\nno"
    page.open(address, READY, "#s=bm8")
    assert page.run(SAID) == "This link cannot be read."


def test_an_output_is_saved_as_a_page(page: Browser, tmp_path: Path) -> None:
    written(page, "regex", "a < b & c > d\\$& [0-9]{2}")
    text = generated(page)
    assert text.startswith("a < b & c > d$& ")
    saved = page.run("""(async () => {
        let kept; const make = URL.createObjectURL;
        URL.createObjectURL = (blob) => { kept = blob; return make.call(URL, blob); };
        HTMLAnchorElement.prototype.click = function () {};
        [...document.querySelectorAll(".pane button")].find((e) => e.textContent === "Save as a page").click();
        while (!kept) await new Promise(requestAnimationFrame);
        return kept.text(); })()""")
    (tmp_path / "saved.html").write_text(saved, encoding="utf-8")
    page.open(tmp_path / "saved.html", READY)
    page.run("document.querySelector('#details details').open = true")
    page.wait("document.querySelector('#details .copy')")
    assert page.run("document.querySelector('#details .copy').textContent") == text


def test_the_keyboard_generates_and_a_prompt_may_be_text(page: Browser) -> None:
    page.run("document.querySelector('[name=prompt-kind][value=text]').click()")
    page.run("(e => { e.value = 'One, two,'; e.focus(); })(document.querySelector('#text-prompt'))")
    written(page, "none", "")
    page.run("(i => { i.value = 5; i.dispatchEvent(new Event('input')) })(document.querySelector('#a-max_tokens'))")
    page.run("document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', ctrlKey: true}))")
    assert finished(page)
    assert page.run(f"{OUTPUT}.length") == 5
    assert "as many tokens as it may" in page.run(SAID)


def test_a_server_with_keys_asks_for_one(browser: Browser, engine: Engine) -> None:
    with serving(engine, places=1, api_keys=["secret"]) as client:
        browser.open(str(client.base_url).rstrip("/") + "/", READY)
        browser.wait("!document.querySelector('#key').hidden")
        browser.run("document.querySelector('#key-value').value = 'secret'")
        browser.click("#key button")
        browser.wait("document.querySelector('#model').textContent === 'm'")
        assert browser.run("document.querySelector('#key').hidden")
        written(browser, "choices", "so")
        assert generated(browser) == "so"
    browser.complaints[:] = [one for one in browser.complaints if "status of 401" not in one]
    assert browser.complaints == []


def test_the_lens_shows_each_layer(
    browser: Browser, engine: Engine, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[int]] = []

    def lens(tokens: Sequence[int], top: int = 5) -> list[tuple[tuple[int, float], ...]]:
        asked.append(list(tokens))
        return [tuple((100 * layer + n, -0.2 - n) for n in range(top)) for layer in range(1, 5)]

    monkeypatch.setattr(engine, "has_lens", True, raising=False)
    monkeypatch.setattr(engine, "lens", lens)
    browser.view(1360, 900)
    browser.complaints.clear()
    browser.open(address, READY)
    generated(browser)
    browser.click("#a-t3")
    browser.run("document.querySelector('details.lens').open = true")
    browser.wait("document.querySelector('.lens tbody')")
    rows = browser.run("[...document.querySelectorAll('.lens tbody th')].map((e) => e.textContent)")
    assert rows == ["output", "2", "1", "input"]
    cells = browser.run(
        "[...document.querySelectorAll('.lens tbody tr:last-child td .count')].map((e) => e.textContent)"
    )
    assert cells == ["82 %", "30 %", "11 %"]
    assert len(asked) == 1
    assert len(asked[0]) > 3
    browser.run(axe() + "; 1")
    assert browser.run(AXE) == []
    browser.view(360, 900)
    assert browser.run("document.documentElement.scrollWidth") <= 360
    folder = os.environ.get("LOGITREE_SCREENSHOTS")
    if folder:
        browser.view(1360, 1200)
        browser.run("document.querySelector('.lens').scrollIntoView({ block: 'center' })")
        browser.screenshot(Path(folder) / "playground-lens.png")
    assert browser.complaints == []


def axe() -> str:
    """The source of axe."""
    found = importlib.util.find_spec("axe_core_python")
    if found is None or not found.submodule_search_locations:
        pytest.skip("axe-core-python is not installed")
    return (Path(found.submodule_search_locations[0]) / "axe.min.js").read_text(encoding="utf-8")


AXE = """axe.run(document).then((found) => found.violations.map(
    (one) => `${one.id}: ${one.nodes.map((node) => node.target + " " + node.failureSummary).join("; ")}`))"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing(page: Browser, dark: bool) -> None:
    source = axe()
    page.view(1360, 900, dark=dark)
    page.run(source + "; 1")
    assert page.run(AXE) == []
    generated(page)
    page.run("document.querySelector('.next').open = true")
    page.wait("document.querySelector('.trie p')")
    page.click("#a-t6")
    page.run("document.querySelector('#a-alternatives td.alt button')?.click()")
    finished(page)
    page.click("#a-t7")
    page.wait("document.querySelector('.trie li')")
    page.click("#compare")
    written(page, "regex", "(")
    page.wait("document.querySelector('#a-wrong').textContent")
    found: list[Any] = page.run(AXE)
    assert found == []
    browser_noise(page)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 1100, 1700])
def test_the_playground_fits_its_window(page: Browser, width: int, dark: bool) -> None:
    page.view(width, 900, dark=dark)
    generated(page)
    page.click("#a-t6")
    page.run("document.querySelector('#a-alternatives td.alt button')?.click()")
    finished(page)
    assert page.run("document.documentElement.scrollWidth") <= width
    folder = os.environ.get("LOGITREE_SCREENSHOTS")
    if folder:
        page.screenshot(Path(folder) / f"playground-{width}-{'dark' if dark else 'light'}.png")
    page.click("#compare")
    assert page.run("document.documentElement.scrollWidth") <= width
