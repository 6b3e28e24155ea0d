"""Ray Data and Ray Serve on a cluster of two nodes on this machine, with a real model; workers are killed."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import pytest

import logitree as lt
from data_files import smollm2
from servers import free_port

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]
pytest.importorskip("ray", reason="ray is not installed")
pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Ray Serve's own models
    import pyarrow as pa
    import ray
    from ray import serve
    from ray.cluster_utils import Cluster

import logitree.ray as fleet  # noqa: E402
from logitree.ray._checkpoint import Checkpoint, key_of  # noqa: E402
from logitree.ray._columns import value_type  # noqa: E402
from logitree.ray._data import Worker  # noqa: E402

COLOURS = ["red", "green", "blue", "violet"]

ROWS = int(os.environ.get("LOGITREE_RAY_ROWS", "250"))
"""How many rows a job with a killed worker has; `make test-ray` gives it a thousand."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Two nodes of three cores each, as far as Ray knows."""
    paths = os.pathsep.join([str(Path(lt.__file__).parents[1]), *sys.path])
    # Ray's processes have them. By itself Serve gives up on an entrance that takes more than seconds to begin.
    given = {"PYTHONPATH": paths, "PYTHONWARNINGS": "ignore", "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "60"}
    kept = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    made = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 3, "object_store_memory": 120_000_000, "include_dashboard": False},
    )
    made.add_node(num_cpus=3, object_store_memory=120_000_000)
    ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    serve.shutdown()
    ray.shutdown()
    made.shutdown()
    for name, value in kept.items():
        os.environ.pop(name)
        os.environ.update({} if value is None else {name: value})


def engine_that_says_where(folder: Path) -> Callable[[], Any]:
    """Makes the model in a worker, and leaves a file with the number of its process."""
    model, told = str(smollm2()), str(folder)

    def make() -> Any:
        import os
        from pathlib import Path

        from logitree.engines.llama_cpp import LlamaCpp

        engine = LlamaCpp(model, n_threads=1, n_ctx=2048)
        (Path(told) / str(os.getpid())).touch()
        return engine

    return make


@pytest.mark.usefixtures("cluster")
def test_many_rows_and_a_worker_that_is_killed(tmp_path: Path) -> None:
    """No row is lost or doubled, each has the token that it has alone, and a second run takes all from the folder."""
    workers, parts = tmp_path / "workers", tmp_path / "parts"
    workers.mkdir()
    rows = [{"id": at, "prompt": f"{at % 50}: a colour is ", "seeds": at % 50} for at in range(ROWS)]
    rows[7]["prompt"] = "word " * 3000  # longer than the context

    def answers(model: Any) -> list[dict[str, Any]]:
        options: dict[str, Any] = {"seed": "seeds", "key": "id", "chat": False, "temp": 2.0, "max_tokens": 8}
        made = fleet.generate(
            ray.data.from_items(rows, override_num_blocks=8), model, COLOURS, workers=2, checkpoint=parts, **options
        )
        return sorted(made.take_all(), key=lambda row: row["id"])

    ended = threading.Event()

    def kill() -> None:
        while len(list(parts.glob("*.arrow"))) < ROWS // 80 and not ended.wait(0.05):
            pass  # however slow the machine is: the rows are there in the end, or the test fails on them
        os.kill(int(next(iter(workers.iterdir())).name), signal.SIGKILL)

    model = engine_that_says_where(workers)
    thread = threading.Thread(target=kill)
    thread.start()
    try:
        first = answers(model)
    finally:
        ended.set()
        thread.join()
    assert [row["id"] for row in first] == list(range(ROWS))
    assert "context" in first[7]["error"] and first[7]["text"] is None and first[7]["value"] is None
    assert all(row["value"] in COLOURS and row["error"] is None for row in first if row["id"] != 7)
    assert len(list(workers.iterdir())) >= 3  # two, and one for the one that was killed
    alone = lt.engines.open(smollm2())
    for at in (0, 31, ROWS - 1):
        one = lt.generate(alone, rows[at]["prompt"], COLOURS, chat=False, temp=2.0, seed=at % 50, max_tokens=8)
        assert first[at]["text"] == one.text
        assert first[at]["seed"] == at % 50
    began = [path.stat().st_mtime_ns for path in sorted(parts.iterdir())]
    assert answers(model) == first
    assert [path.stat().st_mtime_ns for path in sorted(parts.iterdir())] == began


class Person(TypedDict):
    name: str
    age: int


def worker(constraint: Any = None, columns: dict[str, str | None] | None = None, **options: Any) -> Worker:
    """What an actor of Ray Data calls, in this process."""
    names: dict[str, str | None] = {"prompt": "q", "constraints": None, "key": None, "seed": None, **(columns or {})}
    return Worker(str(smollm2()), constraint, names, {"chat": False, "seed": 1, **options}, None, 1)


def test_columns_have_the_types_of_the_constraint() -> None:
    person = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 8},
            "age": {"type": "integer", "maximum": 99, "minimum": 1},
        },
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    questions = pa.table({"q": ["Anna is 7. As JSON: ", "Bob is 9. As JSON: "], "more": [1, 2]})
    found = worker(person)(questions)
    assert found.schema.field("value").type == pa.struct([("name", pa.string()), ("age", pa.int64())])
    assert found.column_names == ["q", "more", "text", "value", "finish_reason", "seed", "error"]
    assert [json.loads(row["text"]) for row in found.to_pylist()] == found.column("value").to_pylist()
    assert found.column("error").to_pylist() == [None, None]
    cut = worker(person, max_tokens=3)(questions)
    assert cut.column("value").to_pylist() == [None, None]
    assert all("IncompleteError" in wrong for wrong in cut.column("error").to_pylist())
    large = worker({"enum": [2**70]})(questions)
    assert large.column("text").to_pylist() == [str(2**70)] * 2
    assert all("int64" in wrong for wrong in large.column("error").to_pylist())
    assert worker(int)(questions.slice(0, 0)).column("value").type == pa.int64()


def test_rows_have_their_own_constraints_and_seeds() -> None:
    forms = [lt.Grammar.regex("[ab]{3}").form(), "{", None, '{"type":"choices","texts":["yes"]}', '{"type":"nothing"}']
    table = pa.table({"q": ["x"] * 5, "form": forms, "seeds": [1, 2, 3, 4, None]})
    found = worker(None, {"constraints": "form", "seed": "seeds"}, max_tokens=4)(table).to_pylist()
    assert set(found[0]["text"]) <= set("ab") and len(found[0]["text"]) == 3
    assert [row["text"] is None for row in found] == [row["error"] is not None for row in found]
    assert [row["error"] is None for row in found] == [True, False, True, True, False]
    assert found[2]["finish_reason"] == "max_tokens"
    assert found[3]["text"] == "yes"
    assert [row["seed"] for row in found] == [1, None, 3, 4, None]
    assert "value" not in found[0]
    table = pa.table({"q": ["x"] * 4, "form": [forms[3]] * 4})
    one = worker(None, {"constraints": "form"}, max_tokens=4)
    assert [row["text"] for row in one(table).to_pylist()] == ["yes"] * 4
    assert one._of_form.cache_info().misses == 1
    (refused,) = one(pa.table({"q": ["x"], "form": [{"type": "regex"}]})).to_pylist()
    assert "str" in refused["error"] and "hash" not in refused["error"]


def test_columns_that_are_missing_or_there_already_are_errors() -> None:
    with pytest.raises(KeyError, match="no column 'q'"):
        worker()(pa.table({"prompt": ["x"]}))
    with pytest.raises(ValueError, match="'text'"):
        worker()(pa.table({"q": ["x"], "text": ["x"]}))


@pytest.mark.usefixtures("cluster")
def test_workers_of_a_machine_share_an_index(tmp_path: Path) -> None:
    """The pages of a catalogue that two processes search are the file's, and no process has its own."""
    path = str(tmp_path / "items.index")
    codes = np.random.default_rng(0).integers(0, 1000, (200_000, 4))
    lt.Catalogue.from_codes(np.unique(codes, axis=0), path=path)
    form = json.dumps({"type": "catalogue", "index": path})

    def search(seed: int) -> tuple[int, dict[str, int]]:
        import os
        import re
        from pathlib import Path

        import logitree as lt

        vocabulary = lt.Vocabulary.from_tokens([str(at).encode() for at in range(1000)] + [b"</s>"], end_tokens=[1000])
        constraint = lt.Constraint.from_form(form)
        for first in range(seed, 1000, 2):
            matcher = constraint.matcher(vocabulary)
            matcher.accept(int(list(matcher.allowed())[first % 999]))
            len(matcher.allowed())
        maps = Path("/proc/self/smaps").read_text().split(path)
        # The first of each kind is the mapping's; others follow up to the next mapping of the file.
        sizes = [dict(reversed(re.findall(r"^(\w+): +(\d+) kB", part, re.M))) for part in maps[1:]]
        kinds = ("Rss", "Private_Dirty", "Shared_Dirty")
        return os.getpid(), {kind: sum(int(size[kind]) for size in sizes) for kind in kinds}

    remote = ray.remote(scheduling_strategy="SPREAD")(search)
    found = ray.get([remote.remote(seed) for seed in (0, 1)])
    assert len({process for process, _ in found}) == 2
    for _, sizes in found:
        assert sizes["Rss"] > 100
        assert sizes["Private_Dirty"] == sizes["Shared_Dirty"] == 0


def test_what_no_worker_can_do_is_said_at_once() -> None:
    rows: Any = ray.data.from_items([{"prompt": "x"}]) if ray.is_initialized() else None
    path = str(smollm2())
    with pytest.raises(TypeError, match="did you mean temperature"):
        fleet.generate(rows, path, temperatur=1)
    with pytest.raises(TypeError, match="trace= is not for"):
        fleet.generate(rows, path, trace=True)
    with pytest.raises(TypeError, match="is loaded here"):
        fleet.generate(rows, lt.engines.open(path))
    with pytest.raises(TypeError, match="means no constraint|several constraints"):
        fleet.generate(rows, path, "yes")
    with pytest.raises(lt.ConstraintError, match="both"):
        fleet.generate(rows, path, int, constraints="form")
    with pytest.raises(lt.StateError, match="key"):
        fleet.generate(rows, path, int, checkpoint="somewhere")
    with pytest.raises(TypeError, match="on_step= is not for"):
        fleet.application(path, on_step=print)


def test_checkpoints_of_other_requests_are_refused_and_broken_files_are_not_there(tmp_path: Path) -> None:
    table = pa.table({"text": ["a", "b"]})
    kept = Checkpoint(tmp_path, {"constraint": "int"})
    kept.add(["1/x", "2/y"], table)
    again = Checkpoint(tmp_path, {"constraint": "int"})
    found = again.find(["0/x", "2/y", "1/x"])
    assert {at: row.to_pylist() for at, row in found.items()} == {1: [{"text": "b"}], 2: [{"text": "a"}]}
    with pytest.raises(lt.StateError, match="another request"):
        Checkpoint(tmp_path, {"constraint": "float"})
    (tmp_path / ".half").write_bytes(b"ARROW")  # what a worker that was killed leaves
    assert Checkpoint(tmp_path, {"constraint": "int"}).find(["1/x"])
    assert key_of(1, ("a", None, 1)) != key_of(1, ("b", None, 1))


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        (int, pa.int64()),
        (bool, pa.bool_()),
        (str, pa.string()),
        (list[float], pa.list_(pa.float64())),
        (["a", "b"], pa.string()),
        ([1, 2.5], pa.float64()),
        (["a", 1], None),
        (Person, pa.struct([("name", pa.string()), ("age", pa.int64())])),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, pa.string()),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"$ref": "#/$defs/x"}}}, None),
        ({"type": "object"}, None),
        ({"type": ["string", "integer"]}, None),
        (lt.Grammar.regex("a"), None),
    ],
)
def test_value_types(constraint: Any, expected: Any) -> None:
    assert value_type(constraint) == expected


def ask(url: str, **body: Any) -> tuple[int, list[dict[str, Any]]]:
    """Status and lines of JSON; status 0 where the answer was broken off."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, [json.loads(line) for line in answer.read().splitlines()]
    except urllib.error.HTTPError as refused:
        text = refused.read()
        return refused.code, [json.loads(text)] if text.startswith(b"{") else []
    except (OSError, ValueError):
        return 0, []


@pytest.mark.usefixtures("cluster")
def test_two_hundred_requests_and_a_replica_that_is_killed(tmp_path: Path) -> None:
    """Each is answered whole, or refused: status 500 or a stream that breaks off."""
    port = free_port()
    serve.start(http_options={"port": port, "location": "HeadOnly"})
    made = fleet.application(engine_that_says_where(tmp_path), COLOURS, replicas=2, running=8, chat=False, max_tokens=8)
    serve.run(made, name="colours", route_prefix="/generate")
    url = f"http://127.0.0.1:{port}/generate"
    with urllib.request.urlopen(url, timeout=30) as answer:
        assert json.load(answer) == {"status": "ready"}
    choices = {"type": "choices", "texts": ["yes", "no"]}
    assert ask(url, prompt="Is fire hot? ", constraint=choices)[1][0]["text"] in ("yes", "no")
    for wrong, what in (
        ({"prompt": "x", "constraint": {"type": "regex", "pattern": "("}}, "group is not closed"),
        ({"prompt": "x", "temperatur": 1}, "did you mean"),
        ({"prompt": 3}, "a prompt is"),
        ({"constraint": choices}, "prompt"),
        ({"prompt": "x", "trace": True}, "not for requests"),
        ({"prompt": "x", "stream": 1}, "stream"),
        ({"prompt": "word " * 3000, "stream": True}, "context"),
    ):
        status, lines = ask(url, **wrong)
        assert status == 400
        assert what in lines[0]["error"]
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(url, b"[" * 100_000, timeout=30)
    assert (refused.value.code, json.load(refused.value)) == (400, {"error": "the request is nested too deep"})

    def one(at: int) -> tuple[int, list[dict[str, Any]]]:
        if at == 60:
            os.kill(int(sorted(tmp_path.iterdir())[0].name), signal.SIGKILL)
        return ask(url, prompt=f"{at}: a colour is ", seed=at, temp=2.0, stream=at % 2 == 0)

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(one, range(200)))
    whole = 0
    for status, lines in answers:
        if status == 200 and lines and "finish_reason" in lines[-1]:
            whole += 1
            assert "".join(line.get("text", "") for line in lines) in COLOURS
        else:
            assert status in (0, 500, 503) or (status == 200 and all("text" in line for line in lines))
    assert whole >= 180
    assert all(status == 200 for status, _ in answers[-40:])
