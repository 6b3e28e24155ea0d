"""Unpacks llama.cpp's chat templates out of its Python sdist: `python scripts/llama_templates.py FOLDER INTO`."""

import os
import shutil
import sys
import tarfile

INSIDE = "/vendor/llama.cpp/models/templates/"


def main(folder, into):
    """The templates of the sdist in `folder`, as files in `into`, and nothing else there."""
    (name,) = (name for name in os.listdir(folder) if name.endswith(".tar.gz"))
    shutil.rmtree(into, ignore_errors=True)
    os.makedirs(into)
    with tarfile.open(os.path.join(folder, name)) as sdist:
        for member in sdist:
            if INSIDE in member.name and member.isfile() and member.name.endswith(".jinja"):
                with open(os.path.join(into, os.path.basename(member.name)), "wb") as file:
                    shutil.copyfileobj(sdist.extractfile(member), file)
    if not os.listdir(into):
        sys.exit(f"{name} has no chat templates in {INSIDE.strip('/')}")


if __name__ == "__main__":
    main(*sys.argv[1:])
