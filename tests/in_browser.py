"""Pages in Chromium: what is wrong with them at the width of a phone and of a desk, in light and dark."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest

PHONE, DESK = 390, 1280
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BACKGROUND = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run")
"""Of the browser's own errands nothing shall be seen here."""
CONTRAST = 4.5
"""What WCAG 2 asks of text; large letters (24 px, or 18.66 px bold) need 3."""

OVERFLOWS = "document.documentElement.scrollWidth > window.innerWidth"
WHOLE_IMAGES = (
    "Promise.all([...document.images].map(one => one.decode().then(() => one.naturalWidth > 1, () => false)))"
)

FAINT = """(least) => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
  const rgba = (text) => {  // in every notation that CSS has, also color-mix
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (front, back) => [0, 1, 2].map((i) => front[3] * front[i] + (1 - front[3]) * back[i]).concat(1);
  const luminance = (colour) => {
    const linear = (c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = colour.slice(0, 3).map((c) => linear(c / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (one) => {
    const layers = [];
    for (let at = one; at; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (style.backgroundImage !== 'none') return null;
      layers.push(rgba(style.backgroundColor));
      if (layers.at(-1)[3] === 1) break;
    }
    const canvasColour = matchMedia('(prefers-color-scheme: dark)').matches ? [18, 18, 18, 1] : [255, 255, 255, 1];
    return layers.reverse().reduce((back, front) => over(front, back), canvasColour);
  };
  const found = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const one = walker.currentNode.parentElement;
    const words = walker.currentNode.textContent.trim();
    const seen = one.checkVisibility({visibilityProperty: true, opacityProperty: true});
    if (!words || !seen || one.closest('script, style, svg')) continue;
    const style = getComputedStyle(one), back = behind(one);
    if (back === null) continue;
    const [a, b] = [luminance(over(rgba(style.color), back)), luminance(back)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && +style.fontWeight >= 700);
    const name = `${one.tagName} ${one.className} ${ratio.toFixed(2)}`;
    if (ratio < (large ? 3 : least) - 0.005) found.set(name, words.slice(0, 40));
  }
  return [...found].map(([where, words]) => `${where}: ${words}`);
}"""
"""Visible text with less contrast than this against what is behind it."""

UNSEEN = """async () => {
  await Promise.all(document.getAnimations().map((one) => one.finished.catch(() => null)));
  const one = document.activeElement;
  if (!one || one === document.body) return null;
  const box = one.getBoundingClientRect(), style = getComputedStyle(one);
  const outside = box.bottom < 0 || box.top > innerHeight || box.right < 0 || box.left > innerWidth;
  const away = outside || !one.checkVisibility();
  const inside = [...one.children].map((child) => getComputedStyle(child));
  const styles = [style, getComputedStyle(one, '::after'), ...inside];
  const marked = styles.some((each) => each.outlineStyle !== 'none' || each.boxShadow !== 'none');
  const name = `${one.tagName} ${one.className} ${one.textContent.trim().slice(0, 30)}`;
  return {name, fault: away ? 'out of sight' : marked ? '' : 'no outline'};
}"""
"""The element with the focus, and what hides it from a person who uses the keyboard."""


@contextmanager
def chromium() -> Iterator[Any]:
    """Chromium without a window; without one on the machine, the test is skipped."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as engine:
        own = engine.chromium.executable_path
        found = own if Path(own).exists() else next(filter(None, map(shutil.which, BROWSERS)), None)
        if found is None:
            pytest.skip(f"no browser on this machine: neither playwright's own nor {', '.join(BROWSERS)}")
        browser = engine.chromium.launch(executable_path=found, args=list(BACKGROUND))
        yield browser
        browser.close()


@contextmanager
def opened(
    browser: Any, file: Path, width: int = DESK, scheme: str = "light", watch: Callable[[Any], object] = id
) -> Iterator[Any]:
    """A tab with a page; nothing is asked of another host. `watch` is called with the tab before the page is loaded."""
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce"
    )
    context.route(lambda url: not url.startswith(("file:", "data:")), lambda route: route.abort())
    tab = context.new_page()
    watch(tab)
    tab.goto(file.as_uri())
    yield tab
    context.close()


def faults(browser: Any, file: Path, width: int, scheme: str, *beside: Path) -> set[str]:
    """Kinds of faults of a page, which may load files of the folders `beside`."""
    found: set[str] = set()
    inside = (file.as_uri(), *(folder.as_uri() for folder in beside), "data:")

    def watch(tab: Any) -> None:
        tab.on("request", lambda asked: None if asked.url.startswith(inside) else found.add("request"))
        tab.on("pageerror", lambda error: found.add("script"))
        tab.on("console", lambda message: found.add("console") if message.type in ("error", "warning") else None)

    with opened(browser, file, width, scheme, watch) as tab:
        for state in ("false", "true"):
            tab.evaluate(f"document.querySelectorAll('details').forEach(one => one.open = {state})")
            found.update({"overflow"} if tab.evaluate(OVERFLOWS) else ())
        found.update(f"contrast of {words}" for words in tab.evaluate(FAINT, CONTRAST))
        tab.evaluate("[...document.images].forEach(one => one.loading = 'eager')")  # what is out of sight is not loaded
        found.update(set() if all(tab.evaluate(WHOLE_IMAGES)) else {"image"})
    return found


def require_whole(browser: Any, file: Path, *beside: Path) -> None:
    """No fault at both widths, in light and dark."""
    for width, scheme in product((PHONE, DESK), ("light", "dark")):
        assert faults(browser, file, width, scheme, *beside) == set(), (file.name, width, scheme)


def require_black_on_white(tab: Any) -> None:
    """The printed page, also where the screen is dark."""
    tab.emulate_media(media="print", color_scheme="dark")
    white = "['rgb(255, 255, 255)', 'rgba(0, 0, 0, 0)'].includes(getComputedStyle(document.body).backgroundColor)"
    tab.wait_for_function(white, polling=50)  # the site's script hears of the other scheme a moment later
    assert tab.evaluate(FAINT, CONTRAST) == []


def require_keyboard(tab: Any, most: int = 60) -> list[str]:
    """Tab goes through the page, and what has the focus is seen; return its elements in order."""
    names: list[str] = []
    for _ in range(most):
        tab.keyboard.press("Tab")
        there = tab.evaluate(UNSEEN)
        if there is None:
            break
        assert not there["fault"], there
        names.append(there["name"])
    assert names
    return names
