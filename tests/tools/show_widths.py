#!/usr/bin/env python3
"""A page of `leat show` in a real browser at six widths: every picture keeps its shape, is not enlarged more than twofold, and the page
does not scroll sideways. Exits with 77 where there is no browser.

    show_widths.py LEAT PHOTOS
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

widths = (320, 400, 800, 1280, 1366, 1920)
# The page measures itself: what it found is an attribute of its body.
measure = """<script>
addEventListener("load", () => {
  const pictures = [...document.querySelectorAll("img")].map(each => {
    const box = each.getBoundingClientRect();
    return {natural: [each.naturalWidth, each.naturalHeight], shown: [box.width, box.height]};
  });
  const page = document.documentElement;
  document.body.dataset.found = JSON.stringify({pictures, width: innerWidth, needed: page.scrollWidth});
});
</script>"""


def look(browser, page, width):
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},1000", "--dump-dom", page.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    found = re.search(r'data-found="([^"]*)"', shown)
    if not found:
        sys.exit(f"{width} pixels: the page did not measure itself")
    return json.loads(found.group(1).replace("&quot;", '"'))


def complaints(found):
    if found["needed"] > found["width"] + 1:
        yield f"needs {found['needed']} pixels of {found['width']}"
    for number, picture in enumerate(found["pictures"]):
        (width, height), (shown_width, shown_height) = picture["natural"], picture["shown"]
        if width == 0 or shown_width == 0:
            yield f"picture {number} is not there"
        elif abs(shown_width * height / (shown_height * width) - 1) > 0.03:
            yield f"picture {number} of {width} x {height} is shown as {shown_width:.0f} x {shown_height:.0f}"
        elif shown_width > 2 * width:
            yield f"picture {number} of {width} pixels is {shown_width:.0f} wide"


def main(leat, photos):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("no chromium: the page was not looked at")
        return 77
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "show.html"
        subprocess.run([leat, "show", photos, "--batch-size", "24", "-o", page], check=True)
        page.write_text(page.read_text() + measure)
        for width in widths:
            found = look(browser, page, width)
            if len(found["pictures"]) < 24:
                wrong.append(f"{width}: {len(found['pictures'])} pictures")
            wrong += [f"{width}: {each}" for each in complaints(found)]
    print("\n".join(wrong) or f"{len(widths)} widths: every picture has its shape")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
