"""The look of every page: one palette for light, one for dark, and few rules."""

INK, SOFT, LINE, PAGE = "#1c1f23", "#5c6570", "#d9dee3", "#fbfbfa"  # of a light page; figures are drawn with them
LIGHT = f"--ink: {INK}; --soft: {SOFT}; --line: {LINE}; --page: {PAGE}; --mark: #0072b2;"
# Of curves, in the order in which they are taken: 3:1 to the page, or more, and apart for every kind of colour vision.
SERIES = ("#0072B2", "#C85500", "#8A22EE", "#4C4C4C", "#00A35C", "#C56F95")
SERIES_DARK = ("#5AB0EA", "#F0884A", "#A468FF", "#E4E6E8", "#55F0A0", "#E0407A")
DARK = "--ink: #e6e8ea; --soft: #a3abb3; --line: #3b4148; --page: #17191c; --mark: #56b4e9;"
_RULES = """
body { margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 56rem; background: var(--page); color: var(--ink);
  overflow-wrap: break-word;
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.25rem; margin: 2.6rem 0 .6rem; }
h3 { font-size: 1rem; margin: 1.6rem 0 .3rem; }
p, ul { margin: .5rem 0; max-width: 44rem; }
.soft, figcaption, footer { color: var(--soft); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { padding: .32rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
th { font-weight: 600; color: var(--soft); }
tr.ours td { font-weight: 600; color: var(--mark); }
table.words :is(th, td) { text-align: left; }
table.words :is(th, td):last-child { white-space: normal; min-width: 8rem; }
table.plain td { white-space: normal; overflow-wrap: anywhere; text-align: left; }
table.plain td:first-child { color: var(--soft); width: 12rem; }
figure { margin: 1.4rem 0 2rem; }
figure svg { display: block; box-sizing: border-box; width: 100%; height: auto; padding: .6rem; background: #fff;
  border: 1px solid var(--line); border-radius: 6px; }
figure .scroll svg { min-width: 40rem; }
figcaption { margin-top: .5rem; max-width: 44rem; }
summary { cursor: pointer; color: var(--soft); }
footer { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: .8rem; font-size: .9rem; }
"""

STYLE = f"""
:root {{ color-scheme: light dark; {LIGHT} }}
@media screen and (prefers-color-scheme: dark) {{ :root {{ {DARK} }} }}
{_RULES}"""
