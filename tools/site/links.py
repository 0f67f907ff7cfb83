"""Checks the links of a built site: each file and each anchor exists, and nothing is loaded from the network."""

import os
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.loads = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append((self.getpos()[0], given["href"]))
        for name in ("src", "href"):
            if tag in ("script", "img", "link", "iframe", "source") and given.get(name):
                self.loads.append((self.getpos()[0], given[name]))


def check(site):
    """Faults as text, the numbers of pages and of local links, and the external links."""
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    faults, count, external = [], 0, set()
    for path, page in pages.items():
        for line, url in page.links + page.loads:
            say = lambda what: faults.append(f"{path.relative_to(site)}:{line}: {url}: {what}")
            parts = urlsplit(url)
            if parts.scheme in ("http", "https") or parts.netloc:
                if (line, url) in page.loads:
                    say("is loaded from the network")
                external.add(url)
                continue
            if parts.scheme:
                continue
            count += 1
            target = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
            if not target.is_file():
                say("does not exist")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                say("the page has no such anchor")
    for path in sorted(site.rglob("*.css")):
        for url in re.findall(r"url\(['\"]?(https?:[^)'\"]*)|@import\s+['\"](https?:[^'\"]*)", path.read_text()):
            faults.append(f"{path.relative_to(site)}: {''.join(url)}: is loaded from the network")
    return faults, len(pages), count, external
