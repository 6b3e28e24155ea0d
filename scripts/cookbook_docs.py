"""Shows the cookbook's scripts in its README: `python scripts/cookbook_docs.py` rewrites it."""

import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "cookbook"
SHOWN = re.compile(r"(^<!-- (\w+\.py) -->\n```py\n).*?(^```$)", re.DOTALL | re.MULTILINE)


def filled(text: str) -> str:
    """The README with each script's code, without its docstring, in the block after the script's name."""

    def shown(match: re.Match[str]) -> str:
        code = (FOLDER / match[2]).read_text(encoding="utf-8").partition('"""\n\n')[2]
        return match[1] + code + match[3]

    return SHOWN.sub(shown, text)


if __name__ == "__main__":
    readme = FOLDER / "README.md"
    readme.write_text(filled(readme.read_text(encoding="utf-8")), encoding="utf-8")
