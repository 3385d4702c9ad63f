#!/usr/bin/env python3
"""What scripts/site gives Doxygen, and what it checks of what came out.

  make.py prepare FOLDER   pages and headers as Doxygen reads them, and the header of all pages with the shelves
  make.py check FOLDER     each link of the site leads to a file and an anchor that are there
"""
import html
import html.parser
import os
import pathlib
import re
import shutil
import sys
import urllib.parse

here = pathlib.Path(__file__).resolve().parent
root = here.parent.parent
shelves_page = "docs/README.md"


def fail(complaints):
    for each in complaints:
        print(f"  {each}", file=sys.stderr)
    sys.exit(f"leat: scripts/site: {len(complaints)} complaints: the lines above")


def source_pages():
    found = [root / name for name in ("README.md", "CHANGELOG.md", "SECURITY.md")]
    found += sorted((root / "docs").rglob("*.md")) + sorted((root / "benchmarks").rglob("*.md"))
    return {str(path.relative_to(root)): path.read_text() for path in found}


def page_id(name):
    """`docs/guides/images.md` is guides_images.html."""
    if name == "README.md":
        return "index"
    if name == shelves_page:
        return "shelves"
    return re.sub(r"[^\w-]", "_", name.removesuffix(".md").removeprefix("docs/")).lower()


def slug(heading):
    """The anchor of a heading on hosts of code; scripts/links has the same."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", heading.replace("`", "").strip().lower()).replace(" ", "-")


class site:
    def __init__(self, folder):
        self.folder, self.pages = pathlib.Path(folder), source_pages()
        self.listed, self.copied, self.complaints = set(), set(), []

    def link(self, page, target):
        """Where a link of a page leads in the site."""
        if "://" in target or target.startswith("mailto:"):
            return target
        path, _, anchor = target.partition("#")
        name = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if name in self.pages:
            return f"{page_id(name)}.html" + (f"#{page_id(name)}-{anchor}" if anchor else "")
        if name.startswith("include/leat/") and name.endswith(".hpp"):
            return name.removeprefix("include/leat/").replace("_", "__").replace(".hpp", "_8hpp.html")
        if (root / name).is_dir():
            if f"{name}/README.md" in self.pages:
                return f"{page_id(name + '/README.md')}.html"
            self.listed.add(name)
            return f"{page_id(name)}.html"
        if not (root / name).is_file():
            self.complaints.append(f"{page}: {target}: there is no such file")
            return target
        self.copied.add(name)
        return "files/" + name + ("" if name.endswith((".json", ".svg", ".png", ".html", ".txt")) else ".txt")

    def words(self, page, text):
        """A text without code: links lead into the site, and what Doxygen would take for a command is a letter."""
        held = []

        def hold(written):
            held.append(written)
            return f"\0{len(held) - 1}\0"

        def code(found):
            # For Doxygen a quote ends code that begins with one backtick.
            return hold(f"`{found[0]}`" if "'" in found[0] else found[0])

        text = re.sub(r"`[^`]+`", code, text)
        text = re.sub(r"\*\*(?=\S)(.+?)(?<=\S)\*\*", lambda found: f"{hold('<b>')}{found[1]}{hold('</b>')}", text)
        text = re.sub(r"\]\(([^)\s]+)\)", lambda found: hold(f"]({self.link(page, found[1])})"), text)
        text = re.sub(r"<!--.*?-->|<br>", lambda found: hold(" <br>" if found[0] == "<br>" else ""), text)
        text = re.sub(r"[@#%]|\\(?![|*_`])", r"\\\g<0>", text)
        text = text.replace("<", "&lt;").replace(">", "&gt;")
        if not re.fullmatch(r"[\s|:-]*", text):
            text = text.replace("--", "\\--")
        while "\0" in text:
            text = re.sub(r"\0(\d+)\0", lambda found: held[int(found[1])], text)
        return text

    def page(self, name):
        """A page as Doxygen reads it."""
        lines, out, seen, fence, indented = self.pages[name].splitlines(), [], {}, None, False
        many = sum(line.startswith("## ") for line in lines) > 3
        for number, line in enumerate(lines):
            mark = re.match(r"( *)```+\s*(\w*)", line)
            if fence is not None:
                out.append("@endcode" if mark else line.replace("@endcode", "@ endcode"))
                if mark:
                    fence = None
                continue
            if mark:
                fence = mark[2]
                out.append("@code{.cpp}" if fence == "cpp" else "@code{.unparsed}")
                continue
            heading = re.match(r"(#+)\s+(.*)", line)
            if heading and number == 0:
                title = re.sub(r"[`@\\]", "", heading[2])
                out.append(f"# {title} {{#{'mainpage' if name == 'README.md' else page_id(name)}}}")
                if many and name != "README.md":
                    out += ["", "[TOC]"]
                continue
            if heading:
                anchor = slug(heading[2])
                seen[anchor] = seen.get(anchor, -1) + 1
                if seen[anchor]:
                    anchor += f"-{seen[anchor]}"
                out.append(f"{heading[1]} {self.words(name, heading[2])} {{#{page_id(name)}-{anchor}}}")
                continue
            # In pages beside docs/ code may be told by its indentation alone.
            indented = re.match(r"    (?!\s*([-*]|\d+\.)\s)", line) is not None and (indented or not out[-1].strip())
            if indented:
                out.append(line)
                continue
            quoted = re.match(r"> ?", line)
            out.append((quoted[0] if quoted else "") + self.words(name, line[quoted.end():] if quoted else line))
        return "\n".join(out) + "\n"

    def shelves(self):
        """The list of pages beside each page, and which page of docs/ is on no shelf."""
        text, on_shelves = "", set()
        for shelf in re.split(r"^## ", self.pages[shelves_page], flags=re.M)[1:]:
            items = ""
            for title, target in re.findall(r"^(?:[-*|]\s+)\[([^\]]+)\]\(([^)]+)\)", shelf, re.M):
                on_shelves.add(os.path.normpath(os.path.join("docs", target)))
                items += f'<li><a href="{self.link(shelves_page, target)}">{title}</a></li>\n'
            text += f"<h2>{shelf.splitlines()[0]}</h2>\n<ul>\n{items}</ul>\n"
        for name in self.pages:
            parents = {str(parent) for parent in pathlib.PurePath(name).parents}
            if name.startswith("docs/") and name != shelves_page and name not in on_shelves and not parents & on_shelves:
                self.complaints.append(f"{shelves_page}: no shelf has {name}")
        headers = '<h2>Headers</h2>\n<ul>\n<li><a href="annotated.html">Classes</a></li>\n<li><a href="files.html">Headers</a></li>\n</ul>\n'
        return text + headers

    def listing(self, name):
        """A page for a folder that a page links to."""
        pages = [each for each in sorted(self.pages) if os.path.dirname(each) == name]
        lines = [f"- [{self.pages[each].splitlines()[0].lstrip('# ')}]({page_id(each)}.html)" for each in pages]
        return f"# {name.split('/')[-1].capitalize()} {{#{page_id(name)}}}\n\n" + "\n".join(lines) + "\n"

    def prepare(self):
        for part in ("pages", "headers", "html"):
            shutil.rmtree(self.folder / part, ignore_errors=True)
            (self.folder / part).mkdir(parents=True)
        for name in self.pages:
            (self.folder / "pages" / f"{page_id(name)}.md").write_text(self.page(name))
        header = (here / "header.html").read_text().replace("SHELVES", self.shelves())
        for name in self.listed:
            (self.folder / "pages" / f"{page_id(name)}.md").write_text(self.listing(name))
        (self.folder / "header.html").write_text(header)
        for name in ("footer.html", "Doxyfile"):
            shutil.copy(here / name, self.folder / name)
        for path in (root / "include/leat").iterdir():
            (self.folder / "headers/leat").mkdir(exist_ok=True)
            (self.folder / "headers/leat" / path.name).write_text(header_text(path.read_text()))
        for name in self.copied:
            to = self.folder / "html" / self.link("README.md", name)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, to)
        if self.complaints:
            fail(self.complaints)


def in_comment(text):
    text = re.sub(r"[@\\]", r"\\\g<0>", text)
    return text.replace("<", "&lt;").replace(">", "&gt;")


def header_text(text):
    """A header whose comments Doxygen reads as people do: `///   name   what it is` is a list, what stands deeper is code."""
    # Doxygen lists friends, and has no place that the list could lead to.
    text = re.sub(r"^( *)friend\b[^;{]*(?:;|= default;|\{[^\n]*\}$|\{.*?^\1\}$)", "", text, flags=re.M | re.S)
    out, in_list, in_code, at_head = [], False, False, True
    for line in text.splitlines():
        if at_head and line.startswith("//"):
            out.append(("/// @file\n" if not out else "") + "/// " + in_comment(line.removeprefix("//").strip()))
            continue
        at_head = at_head and not line
        comment = re.match(r"(\s*)///(?!<)(.*)", line)
        end = ("</dd></dl>" if in_list else "") + ("\n@endcode" if in_code else "")
        if not comment:
            if end:
                out[-1] += end.replace("\n@", f"\n{out_indent}/// @")
            in_list = in_code = False
            beside = re.match(r"(.*///<)(.*)", line)
            out.append(beside[1] + in_comment(beside[2]) if beside else line)
            continue
        out_indent, said = comment[1], comment[2]
        item = re.match(r"   (?! )(\S.*?)\s{2,}(\S.*)", said)
        if item:
            begin = "</dd>" if in_list else '<dl class="names">'
            if in_code:
                begin, in_code = "@endcode\n" + out_indent + "/// " + begin, False
            out.append(f"{out_indent}/// {begin}<dt>{in_comment(item[1])}</dt><dd>{in_comment(item[2])}")
            in_list = True
        elif in_list and re.match(r"\s{5,}\S", said):
            out.append(f"{out_indent}/// {in_comment(said.strip())}")
        elif re.match(r"\s{5,}\S", said):
            out.append(f"{out_indent}/// " + ("" if in_code else f"@code{{.cpp}}\n{out_indent}/// ") + said[5:])
            in_code = True
        else:
            if end:
                out[-1] += end.replace("\n@", f"\n{out_indent}/// @")
            in_list = in_code = False
            out.append(f"{out_indent}///{in_comment(said)}")
    return "\n".join(out) + "\n"


class links_of(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.targets, self.anchors, self.left = set(), set(), set()
        self.tags, self.code = [], []  # the elements that are open, and which of them are code
        self.feed(text)

    def handle_endtag(self, tag):
        while tag in self.tags:
            self.code.pop()
            if self.tags.pop() == tag:
                break

    def handle_data(self, data):
        # What a page of Markdown is made of, and should have become something else.
        if not any(self.code):
            self.left.update(re.findall(r"`[^`]{0,20}|\\ilinebr|\]\([\w./]+\.(?:md|html)|\*\*\w{1,20}|<t[dr]", data))

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.code.append(tag in ("code", "pre", "script", "a") or ("class", "line") in attributes)
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            if value and (name, tag) in {("href", "a"), ("href", "link"), ("src", "script"), ("src", "img")}:
                self.targets.add(value)


def check(folder):
    site = pathlib.Path(folder) / "html"
    for name in ("style.css", "search.css"):
        shutil.copy(here / name, site / ("search/search.css" if name == "search.css" else name))
    for unused in ("doxygen.css", "tabs.css", "bc_s.png", "bc_sd.png", "bdwn.png", "doc.png", "doc.svg", "folderclosed.png", "nav_f.png",
                   "nav_fd.png", "nav_g.png", "nav_h.png", "nav_hd.png", "splitbar.png", "splitbard.png", "sync_off.png", "sync_on.png",
                   "tab_a.png", "tab_ad.png", "tab_b.png", "tab_bd.png", "tab_h.png", "tab_hd.png", "tab_s.png", "tab_sd.png"):
        (site / unused).unlink(missing_ok=True)
    for path in site.glob("*.html"):
        text = re.sub(r'<div class="summary">.*?</div>', "", path.read_text(), flags=re.S)  # it names sections that are not there
        path.write_text(re.sub(r"<code>.*?</code>", lambda found: found[0].replace("\\|", "|"), text))
    # The pages are in the lists of files and of what the search finds, beside themselves.
    files = site / "files.html"
    files.write_text(re.sub(r"<tr id=[^\n]*_8md\.html[^\n]*</tr>\n?", "", files.read_text()))
    for path in (site / "search").glob("*.js"):
        path.write_text(re.sub(r"^.*_8md\.html.*\n", "", path.read_text(), flags=re.M))
    for path in site.glob("*_8md.html"):
        path.unlink()
    pages = {path: links_of(path.read_text()) for path in site.glob("*.html")}
    complaints = []
    for path, page in sorted(pages.items()):
        complaints += [f"{path.name}: it shows {left!r}, which is Markdown" for left in sorted(page.left)]
        for target in sorted(page.targets):
            parts = urllib.parse.urlsplit(target)
            if parts.scheme in ("http", "https", "mailto") or target.startswith("javascript:"):
                continue
            to = (site / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if not to.exists():
                complaints.append(f"{path.name}: {target}: there is no such file")
            elif parts.fragment and to in pages and urllib.parse.unquote(parts.fragment) not in pages[to].anchors:
                complaints.append(f"{path.name}: {target}: there is no such anchor")
    for name, text in source_pages().items():
        shown = re.sub(r"\s|<[^>]+>", "", (site / f"{page_id(name)}.html").read_text())
        for code in re.findall(r"`([^`\n]+)`", re.sub(r"(?ms)^\s*```.*?^\s*```\s*$", "", text)):
            if re.sub(r"\s", "", html.escape(code.replace("\\|", "|"), quote=False)) not in shown.replace("&quot;", '"').replace("&#39;", "'"):
                complaints.append(f"{name}: the site does not show {code!r}")
    if complaints or len(pages) < 50:
        fail(complaints or [f"only {len(pages)} pages came out"])
    print(f"leat: {site / 'index.html'}: {len(pages)} pages, {sum(len(page.targets) for page in pages.values())} links")


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("prepare", "check"):
        sys.exit(__doc__)
    if sys.argv[1] == "prepare":
        site(sys.argv[2]).prepare()
    else:
        check(sys.argv[2])
