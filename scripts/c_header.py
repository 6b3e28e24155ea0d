"""Writes include/logitree.h from the sources of crates/logitree-c: `python scripts/c_header.py > include/logitree.h`.
With --typescript it writes the table of functions, bindings/typescript/src/functions.ts.

It reads what the sources export: functions of `export!`, `#[no_mangle]` functions, `#[repr(C)]` structs, the status
enum, constants, handles, and their comments. A test compares the file with what this prints. It knows nothing of what
the functions do.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "crates" / "logitree-c" / "src"
ORDER = [
    "library",
    "memory",
    "status",
    "any",
    "vocabulary",
    "constraint",
    "matcher",
    "chain",
    "metrics",
    "decoder",
    "batch",
    "catalogue",
    "llama",
]
"""The files in the header's order."""

PLAIN = {
    "c_char": "char",
    "c_void": "void",
    "u8": "uint8_t",
    "u16": "uint16_t",
    "u32": "uint32_t",
    "u64": "uint64_t",
    "i32": "int32_t",
    "i64": "int64_t",
    "f32": "float",
    "f64": "double",
    "usize": "size_t",
    "bool": "bool",
}

HEAD = """\
/* logitree's C interface. Written by scripts/c_header.py from crates/logitree-c; docs/c.md has the guide.

   Results. A function returns a status: 0 is success, and results are written through pointers. After an error
   nothing has changed, a handle that would have been made is NULL, and logitree_error_message(), _place() and
   _help() of the same thread say more. No panic and no exception leaves a function.

   Handles. A handle is a number in the form of a pointer: do not look at what it points to. What was freed, is of
   another kind, or was never a handle is LOGITREE_ERROR_HANDLE. Every handle that a function makes is freed by
   logitree_free, once, in any order: a function copies what it is given, and what was made of a handle lives on
   without it. Where a parameter is a void * called handle, it takes handles of several kinds.

   Threads. Vocabularies, constraints, walks and records never change, and any number of threads may
   use them at once. A matcher, a chain and a decoder are for one thread at a time, which need not be the one that
   made it; a call on one that another call uses is LOGITREE_ERROR_BUSY. Freeing a handle that a call uses is
   LOGITREE_ERROR_BUSY too.

   Memory. Pointers are read and written during the call only, and only as far as their lengths say. A pointer
   with a length of 0 may be NULL. Lists and buffers do not overlap. Texts are UTF-8, `length` bytes of them or
   LOGITREE_NUL_TERMINATED.

   Logits. A type of logits is LOGITREE_F32, LOGITREE_F16 or LOGITREE_BF16, and their number counts elements.

   JSON. Options and parameters of what is made are JSON texts; no call for each token takes or gives one.

   Buffers. A function that writes a list takes a buffer, its capacity, and a pointer to the number of elements.
   If they do not fit it is LOGITREE_ERROR_BUFFER, nothing has changed, and the number says how much room is
   needed; with a capacity of 0 the buffer may be NULL. */

#ifndef LOGITREE_H
#define LOGITREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
"""

TAIL = """\
#ifdef __cplusplus
}
#endif

#endif /* LOGITREE_H */
"""

COMMENT = r"((?:^[ \t]*///[^\n]*\n)*)"
ITEM = re.compile(
    COMMENT
    + r"(?:^[ \t]*#\[[^\n]*\]\n)*"
    + r"(?:"
    + r"^pub (?:unsafe )?extern \"C\" fn (?P<function>\w+)\((?P<parameters>[^)]*)\)(?: -> (?P<result>[^{]+?))? \{"
    + r"|^    fn (?P<exported>logitree_\w+)\((?P<arguments>[^)]*)\) \{"
    + r"|^pub struct (?P<struct>Logitree\w+) \{\n(?P<fields>.*?)^\}"
    + r"|^pub enum (?P<enum>Logitree\w+) \{\n(?P<variants>.*?)^\}"
    + r"|^pub const (?P<constant>LOGITREE_\w+): (?P<type>\w+) = (?P<value>[^;]+);"
    + r"|^[ \t]*(?P<handle>Logitree\w+), [^\n]+, \d+, \"\w+\"$"
    + r")",
    re.MULTILINE | re.DOTALL,
)
FIELD = re.compile(COMMENT + r"^    pub (\w+): ([^,]+),$", re.MULTILINE)
VARIANT = re.compile(COMMENT + r"^    (\w+) = (\d+),$", re.MULTILINE)


def c_name(name: str) -> str:
    """`LogitreeWalk` as C writes it."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def c_type(rust: str) -> str:
    """A type as C writes it, without the name of what has it."""
    if pointer := re.fullmatch(r"(In|Out)<(.+)>", rust):
        rust = ("*const " if pointer[1] == "In" else "*mut ") + pointer[2]
    for start, const in (("*const ", True), ("*mut ", False)):
        if rust.startswith(start):
            inner = c_type(rust.removeprefix(start))
            if inner.endswith("*"):
                return inner + ("const *" if const else "*")
            return ("const " if const else "") + inner + " *"
    if rust in PLAIN:
        return PLAIN[rust]
    if not rust.startswith("Logitree"):
        raise SystemExit(f"{rust} has no type in C")
    return c_name(rust)


def declared(rust: str, name: str) -> str:
    """A declaration of this type."""
    kind = c_type(rust)
    return kind + name if kind.endswith("*") else f"{kind} {name}"


def comment(text: str, indent: str = "") -> str:
    """A Rust comment as C's."""
    lines = [re.sub(r"^[ \t]*/// ?", "", line) for line in text.splitlines()]
    lines = [re.sub(r"^# Safety$", "Pointers:", line) for line in lines]
    joined = re.sub(r"\[?`LogitreeStatus::(\w+)`\]?", lambda m: status(m[1]), "\n".join(lines))
    joined = re.sub(r"Pointers:\n", "Pointers: ", joined)
    paragraphs = [" ".join(part.split()) for part in joined.replace("`", "").split("\n\n")]
    margin, width = indent + "   ", 117
    wrapped = [textwrap.fill(part, width, initial_indent=margin, subsequent_indent=margin) for part in paragraphs]
    body = "\n\n".join(wrapped).removeprefix(margin)
    return f"{indent}/* {body} */\n" if body else ""


def status(variant: str) -> str:
    """The C name of a variant of the status."""
    return "LOGITREE_" + re.sub(r"(?<!^)(?=[A-Z])", "_", variant).upper()


def function(found: re.Match[str]) -> str:
    """The declaration of a function."""
    given = found["arguments"] if found["exported"] else found["parameters"]
    parameters = [part.strip().partition(": ") for part in given.split(",") if part.strip()]
    inside = ", ".join(declared(kind, name) for name, _, kind in parameters) or "void"
    name = found["exported"] or found["function"]
    result = "LogitreeStatus" if found["exported"] else found["result"]
    line = (declared(result, name) if result else f"void {name}") + f"({inside});"
    if len(line) > 120:
        head, _, rest = line.partition("(")
        line = f"{head}(\n    " + rest.replace(", ", ",\n    ")
    return line + "\n"


def struct(found: re.Match[str]) -> str:
    """The declaration of a struct, and of what fills one of options."""
    name = c_name(found["struct"])
    fields = [(text, field, kind) for text, field, kind in FIELD.findall(found["fields"])]
    body = "".join(f"{comment(text, '    ')}    {declared(kind, field)};\n" for text, field, kind in fields)
    made = f"typedef struct {name} {{\n{body}}} {name};\n"
    if fields[0][1] == "struct_size":
        zeros = ["NULL" if kind.startswith("*") else "0" for _, _, kind in fields[1:]]
        made += f"#define {name.upper()}_INIT {{{', '.join([f'sizeof({name})', *zeros])}}}\n"
    return made


def enum(found: re.Match[str]) -> str:
    """The declaration of an enum, whose type is a number of a known size."""
    rows = VARIANT.findall(found["variants"])
    body = "".join(f"{comment(text, '    ')}    {status(name)} = {number},\n" for text, name, number in rows)
    return f"typedef int32_t {c_name(found['enum'])};\nenum {{\n{body.rstrip(',' + chr(10))}\n}};\n"


def constant(found: re.Match[str]) -> str:
    """The definition of a constant."""
    values = {"usize::MAX": "SIZE_MAX", "u32::MAX": "UINT32_MAX"}
    value = values.get(found["value"]) or found["value"] + ("u" if found["type"] == "u32" else "")
    return f"#define {found['constant']} {value}\n"


def items() -> Iterator[str]:
    """The declarations, in the header's order; handles come first, since functions of any file name them."""
    sources = {name: (SOURCES / f"{name}.rs").read_text(encoding="utf-8") for name in ORDER}
    texts = {name: text.partition("#[cfg(test)]")[0] for name, text in sources.items()}
    for text in texts.values():
        for found in ITEM.finditer(text):
            if found["handle"]:
                name = c_name(found["handle"])
                yield f"{comment(found[1])}typedef struct {name} {name};\n"
    for text in texts.values():
        for found in ITEM.finditer(text):
            if found["enum"]:
                yield comment(found[1]) + enum(found)
    for text in texts.values():
        for found in ITEM.finditer(text):
            about = comment(found[1])
            if found["function"] or found["exported"]:
                yield about + function(found)
            elif found["struct"]:
                yield about + struct(found)
            elif found["constant"]:
                yield about + constant(found)


def header() -> str:
    """The whole file."""
    return "\n".join([HEAD, *items(), TAIL])


def kind(rust: str) -> str:
    """A type as the table of TypeScript has it: a number's, `handle`, `memory`, or `text` for one that is returned."""
    if rust.startswith(("In<", "Out<")):
        return "memory"
    if rust.startswith("*"):
        return "text" if rust.endswith("c_char") else "handle"
    return {"LogitreeStatus": "i32", "usize": "size"}.get(rust, rust)


def typescript() -> str:
    """The table of functions for TypeScript."""
    lines = []
    for name in ORDER:
        text = (SOURCES / f"{name}.rs").read_text(encoding="utf-8").partition("#[cfg(test)]")[0]
        for found in ITEM.finditer(text):
            if found["constant"] == "LOGITREE_ABI_VERSION":
                version = found["value"]
            if not (found["function"] or found["exported"]):
                continue
            given = found["arguments"] if found["exported"] else found["parameters"]
            kinds = [part.strip().partition(": ")[2] for part in given.split(",") if part.strip()]
            # A pointer of a plain function is to memory; of `export!`, only In and Out are.
            listed = ", ".join(
                f'"{kind(one) if found["exported"] else kind(one).replace("text", "memory")}"' for one in kinds
            )
            result = "i32" if found["exported"] else kind(found["result"] or "void")
            lines.append(f'  {found["exported"] or found["function"]}: ["{result}", [{listed}]],\n')
    about = "/** The functions of include/logitree.h. Written by scripts/c_header.py --typescript. */\n\n"
    abi = f"/** The version of the interface that the table is of. */\nexport const ABI_VERSION = {version};\n\n"
    return about + abi + "export const FUNCTIONS = {\n" + "".join(lines) + "} as const;\n"


if __name__ == "__main__":
    sys.stdout.write(typescript() if "--typescript" in sys.argv else header())
