"""Headless Chromium for tests that look at pages."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_ARGUMENTS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps",
)  # fmt: skip
SECONDS = 60
"""How long a page may take on a loaded machine."""


@contextmanager
def chromium(width: int = 1400, height: int = 1000) -> Generator[Any]:
    """A browser; the test is skipped where the machine has none (Debian: `chromium` and `chromium-driver`)."""
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("no chromium and chromedriver here: apt-get install chromium chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    for argument in (*_ARGUMENTS, f"--window-size={width},{height}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.binary_location = binary
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        browser.set_page_load_timeout(SECONDS)
        yield browser
    finally:
        browser.quit()


class Page:
    """A report in a browser."""

    def __init__(self, browser: Any, path: Path, route: str = "") -> None:
        self.browser = browser
        browser.get("about:blank")  # else a page that is open already would only follow the link
        browser.get(f"{path.as_uri()}#{route}")
        self.until(lambda: browser.execute_script("return document.documentElement.dataset.ready === 'true'"))

    def until(self, holds: Callable[[], Any]) -> Any:
        """Wait until something holds, and answer it; an element that the page has replaced by then does not hold."""
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.ui import WebDriverWait

        gone = (StaleElementReferenceException,)
        return WebDriverWait(self.browser, SECONDS, ignored_exceptions=gone).until(lambda _: holds())

    def go(self, route: str) -> None:
        """Follow a link within the page."""
        self.browser.execute_script("location.hash = arguments[0]", route)
        self.until(lambda: self.browser.execute_script("return hashOf(route) === hashOf(routeOf(location.hash))"))

    def all(self, selector: str) -> list[Any]:
        """The elements that match."""
        return self.browser.find_elements("css selector", selector)

    def one(self, selector: str) -> Any:
        """The first that matches, once it is there."""
        return self.until(lambda: next(iter(self.all(selector)), None))

    def text(self, selector: str) -> str:
        """Its text, hidden parts included, once it is there: found and read in one step."""
        read = "return document.querySelector(arguments[0])?.textContent ?? null"
        return self.until(lambda: self.browser.execute_script(read, selector))

    def click(self, selector: str) -> None:
        """Click on the first that matches."""
        self.until(lambda: (self.one(selector).click(), True)[1])

    def press(self, *keys: str) -> None:
        """Type into what has the focus."""
        self.browser.switch_to.active_element.send_keys(*keys)

    def problems(self) -> list[str]:
        """What the browser complained about."""
        return [entry["message"] for entry in self.browser.get_log("browser")]
