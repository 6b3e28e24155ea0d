"""A catalogue of titles: beam search that returns only titles of the list, after a thought within a budget.

With the tiny model it is 2,000 titles; with a real one (`--model`) a hundred thousand, and a plot, catalogue.svg.
"""

import importlib.util
import itertools
import random
import tempfile
from pathlib import Path

import tiny

import logitree as lt

WORDS = """old red cold kind small slow warm glad new deep wild dark quiet lost high golden last first long white
fox river boat boy farm sea king bay road tree wolf ship city song moon bird hill oak ring rose bell star wind rain tide
and of by under without above against beyond"""
ADJECTIVES, NOUNS, LINKS = (line.split() for line in WORDS.splitlines())

engine = tiny.engine(f"{tiny.STORY} {WORDS.title()} The Fox and the River of the Boy by the Boat.")
every = [
    f" The {adjective.title()} {noun.title()} {link} the {other.title()}"
    for adjective, noun, link, other in itertools.product(ADJECTIVES, NOUNS, LINKS, NOUNS)
]
titles = random.Random(0).sample(every, 2_000) if isinstance(engine, tiny.TinyEngine) else every
end = engine.vocabulary.end_tokens[0]

with tempfile.TemporaryDirectory() as folder:
    # The index is a file: a server opens it at once, and many processes share its pages.
    lt.Catalogue.from_texts(titles, engine.tokenize, path=Path(folder) / "titles.index")
    tree = lt.Catalogue.open(Path(folder) / "titles.index")
    assert len(tree) == len(titles)
    paths = tree.walk(end_token=end, vocabulary=len(engine.vocabulary))

    # At most 12 tokens of reasoning in braces, which the prompt has begun; then a title.
    prompt = "A story about a fox by the cold river, and its title. {"
    budget = lt.ReasoningBudget("{", "}", budget=12)
    written = lt.generate(engine, prompt, budget + paths.matcher(), seed=1, temperature=0.7, chat=False)
    thoughts, answer = budget.split(written.tokens, engine.vocabulary, at="inside")
    title = engine.vocabulary.decode([token for token in answer if token != end]).decode()
    assert title in titles
    assert written.stats.reasoning_tokens <= 13
    print(f"sampled after {written.stats.reasoning_tokens} tokens of reasoning:{title}")

    # The likeliest titles after that reasoning, exactly scored; only what is in stock, which is every second title.
    stock = tree.walk(end_token=end, allowed=range(0, len(titles), 2), vocabulary=len(engine.vocabulary))
    tokens = [*engine.encode(prompt, chat=False), *thoughts]
    (found,) = lt.beam_search(engine, [tokens], stock, width=8, returned=3)
    for hypothesis in found:
        (item,) = hypothesis.items
        assert item % 2 == 0
        assert engine.vocabulary.decode(hypothesis.tokens[:-1]).decode() == titles[item]
        print(f"{hypothesis.log_probability:8.2f} {titles[item]}")

    # How few tokens are allowed on the way to the best: what the model need not be asked for.
    best = found[0].tokens
    ways = [len(stock.allowed(state)) for at in range(len(best)) if (state := stock.find(best[:at])) is not None]
    print("allowed tokens on the way:", ways)

if len(titles) > 2_000 and importlib.util.find_spec("matplotlib"):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3), layout="constrained")
    axes = figure.subplots()
    axes.bar(range(len(ways)), ways)
    axes.set(yscale="log", xlabel="token", ylabel="allowed tokens", title=f"{len(titles):,} titles")
    figure.savefig("catalogue.svg")
