"""The pictures of the results page in the documents, taken in Chromium: wide and light, narrow and dark.

python benchmarks/page_pictures.py [--results results] [--out docs]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from chromium import chromium, chromium_path
from ompb.paper.page.html import results_page
from ompb.paper.page.material import Material

# name, place on the page, width, height, dark
PICTURES = (("page.png", "#in-short", 1180, 760, False), ("page-phone.png", "#what-a-method-is-shown", 390, 760, True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--out", type=Path, default=Path("docs"))
    words = parser.parse_args()
    program = chromium_path()
    if program is None:
        sys.exit("Chromium is not installed.")
    with tempfile.TemporaryDirectory() as folder, chromium(program) as browser:
        page = Path(folder) / "index.html"
        page.write_text(results_page(Material.read(words.results)), encoding="utf-8")
        for name, place, width, height, dark in PICTURES:
            browser.open(page.as_uri(), width=width, height=height, dark=dark)
            browser.value(f"document.querySelector({place!r}).scrollIntoView()")
            browser.picture(words.out / name)


if __name__ == "__main__":
    main()
