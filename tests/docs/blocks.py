#!/usr/bin/env python3
"""Whether the code blocks of README.md and of docs/ are what they say.

  blocks.py forms                                  each block is fenced and names its language; JSON and Python are parsed
  blocks.py cpp FOLDER COMPILER [FLAG...]          C++ compiles, with nothing but what users have
  blocks.py sh PROGRAM                             bash takes the lines, and the command every line of `leat`; PROGRAM is command_lines
  blocks.py cmake FOLDER [CMAKE ARGUMENT...]       CMake configures a project of each block, with targets that are empty

C++ with `#include` or `int main` is a whole file. Any other block is the body of a coroutine, for which all public headers and Asio are
included; `cpp continued` goes on where the block before it ended. A whole file that includes a library which is not here is left out.
"""
import ast
import json
import pathlib
import re
import shlex
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent.parent
languages = {"cpp", "sh", "cmake", "json", "python", "yaml", "text"}


class block:
    def __init__(self, page, line, language, words):
        self.page, self.line, self.language, self.words, self.text = page, line, language, words, ""

    @property
    def place(self):
        return f"{self.page}:{self.line}"


def parse(page):
    """(blocks, complaints) of a page."""
    blocks, complaints, open_block, indent, list_indent = [], [], None, 0, None
    for number, line in enumerate((root / page).read_text().splitlines(), 1):
        fence = re.match(r"( *)(```+|~~~+)\s*(.*)", line)
        if open_block:
            if fence and not fence[3]:
                blocks.append(open_block)
                open_block = None
            else:
                open_block.text += line.removeprefix(" " * indent) + "\n"
            continue
        if fence:
            indent = len(fence[1])
            words = fence[3].split()
            if fence[2] != "```" or not words or words[0] not in languages or words[1:] not in ([], ["continued"]):
                complaints.append(f"{page}:{number}: a block begins with ``` and one of {', '.join(sorted(languages))}")
            open_block = block(page, number + 1, words[0] if words else "", words[1:])
            continue
        item = re.match(r"\s*(?:[-*+]|\d+\.)\s+", line)
        if item and (list_indent is not None or len(line) - len(line.lstrip()) < 4):
            list_indent = len(item[0])
        elif line.strip():
            column = len(line) - len(line.lstrip())
            if column == 0:
                list_indent = None
            if "\t" in line[:column] or column >= 4 + (list_indent or 0):
                complaints.append(f"{page}:{number}: a line that begins with four spaces is code; put ``` and its language around it")
    if open_block:
        complaints.append(f"{open_block.place}: this block has no end")
    return blocks, complaints


def parse_all():
    pages = ["README.md", *sorted(str(path.relative_to(root)) for path in root.glob("docs/**/*.md"))]
    blocks, complaints = [], []
    for page in pages:
        of_page, wrong = parse(page)
        blocks += of_page
        complaints += wrong
    return blocks, complaints


def of_language(language):
    return [each for each in parse_all()[0] if each.language == language]


def end(complaints, count, what):
    for each in complaints:
        print(each)
    print(f"{count} {what}, {len(complaints)} complaints")
    return 1 if complaints or not count else 0


def check_json(each):
    try:
        json.loads(each.text)
    except json.JSONDecodeError:
        for line in filter(str.strip, each.text.splitlines()):  # or one object in each line
            json.loads(line)


def forms():
    blocks, complaints = parse_all()
    for each in blocks:
        try:
            if each.language == "json":
                check_json(each)
            elif each.language == "python":
                ast.parse(each.text)
        except (ValueError, SyntaxError) as problem:
            complaints.append(f"{each.place}: this is no {each.language}: {problem}")
    return end(complaints, len(blocks), "blocks")


def is_whole(each):
    return re.search(r"^\s*#include|^int main\b", each.text, re.M) is not None


def numbered(each):
    return f'#line {each.line} "{each.page}"\n{each.text}'


def fragments_unit(fragments, headers):
    """All fragments as one file: each is a coroutine, which those that go on with it are parts of."""
    text = "".join(f"#include <{header}>\n" for header in headers)
    text += "#include <boost/asio.hpp>\n#include <boost/asio/experimental/awaitable_operators.hpp>\n\n"
    text += "".join(f"#include <{header}>\n" for header in "chrono filesystem fstream iostream map set sstream utility".split())
    text += "namespace asio = boost::asio;\nusing namespace std::chrono_literals;\nusing namespace leat::literals;\n"
    for i, parts in enumerate(fragments):
        text += f"asio::awaitable<void> fragment_{i}();\nasio::awaitable<void> fragment_{i}() {{\n"
        text += "".join(map(numbered, parts)) + "co_return;\n}\n"
    return text


# Public headers that only a leat with something more has.
needs = {"leat/mpi.hpp": "mpi.h", "leat/cuda.hpp": "cuda_runtime_api.h", "leat/torch.hpp": "ATen/ATen.h",
         "leat/torch_dataset.hpp": "torch/data.h"}


def whole_unit(each):
    """A file as it stands, where the libraries of others that it includes are here."""
    others = [needs.get(name, name) for name in re.findall(r"#include [<\"]([\w./-]+)[>\"]", each.text)
              if name in needs or re.search(r"/|\.h", name) and not name.startswith(("leat/", "boost/", "sys/"))]
    if not others:
        return numbered(each)
    here = " && ".join(f"__has_include(<{name}>)" for name in others)
    left_out = f"{each.place} is left out: one of {', '.join(others)} is not here"
    return f'#if {here}\n{numbered(each)}#else\n#pragma message("{left_out}")\n#endif\n'


def cpp(folder, compiler, *flags):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.cpp"):
        old.unlink()
    complaints, fragments, units, before = [], [], {}, None
    blocks = of_language("cpp")
    for each in blocks:
        if "continued" in each.words:
            if before is None or before.page != each.page or is_whole(before):
                complaints.append(f"{each.place}: it is `continued`, and the C++ before it on this page is no fragment")
            else:
                fragments[-1].append(each)
        elif is_whole(each):
            units[re.sub(r"\W+", "_", each.place)] = whole_unit(each)
        else:
            fragments.append([each])
        before = each
    if fragments:
        headers = sorted({f"leat/{path.name}" for path in (root / "include/leat").glob("*.hpp")} - set(needs))
        units["fragments"] = fragments_unit(fragments, headers)
    for name, text in units.items():
        unit = folder / f"{name}.cpp"
        unit.write_text(text)
        done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused-variable", "-Wno-unused-function",
                               "-Wno-unused-but-set-variable", "-Wno-#pragma-messages", *flags, str(unit)],
                              capture_output=True, text=True, cwd=root)
        print(done.stderr, end="")
        if done.returncode:
            complaints.append(f"{unit} does not compile, as said above")
    return end(complaints, len(blocks), f"blocks of C++ in {len(units)} units")


def commands(line):
    """The simple commands of a line of a shell, as words; what $(...) holds is one too."""
    while inner := re.search(r"\$\(([^()]*)\)", line):
        yield from commands(inner[1])
        line = line[:inner.start()] + "1" + line[inner.end():]
    line = re.sub(r"(?<=\s)\d(?=[<>])", "", line)  # the 2 of 2>&1
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    words.commenters = "#"
    command, redirected = [], False
    for word in words:
        if set(word) <= set("();<>|&"):
            redirected = bool(set(word) & set("<>"))
            if not redirected and command:
                yield command
                command = []
        elif not redirected:
            command.append("1" if re.fullmatch(r"\$\{?\w+\}?", word) else word)
        else:
            redirected = False
    if command:
        yield command


def named_leat(words):
    """Where the words name the command to run, behind what may stand before it (NAME=value, mpirun -n 8, docker run ...)."""
    if words[0] in ("man", "git", "cd", "cmake", "pkg-config"):
        return None
    return next((i for i, word in enumerate(words) if word == "leat" or word.endswith("/leat") and word.startswith(("build/", "/usr"))), None)


def sh(program):
    complaints, lines, blocks = [], [], of_language("sh")
    for each in blocks:
        taken = subprocess.run(["bash", "-n"], input=each.text, capture_output=True, text=True)
        if taken.returncode:
            complaints.append(f"{each.place}: {taken.stderr.strip()}")
            continue
        number = each.line
        for line in re.sub(r"\\\n", "\\\\\0", each.text).split("\n"):
            place = f"{each.page}:{number}"
            number += 1 + line.count("\0")
            for words in commands(line.replace("\\\0", " ")):
                complaints += [f"{place}: there is no {word}" for word in words
                               if re.fullmatch(r"(\./)?(scripts|benchmarks)/[\w/-]+", word) and not (root / word).exists()]
                at = named_leat(words)
                if at is not None:
                    lines.append(place + "\t" + "\x1f".join(["leat", *words[at + 1:]]))
    done = subprocess.run([program], input="".join(line + "\n" for line in lines), capture_output=True, text=True)
    complaints += (done.stdout + done.stderr).splitlines()
    return end(complaints, len(lines), f"lines of leat in {len(blocks)} blocks of sh")


stub = """add_library(leat_stub INTERFACE)
add_library(leat::leat ALIAS leat_stub)
add_library(leat::core ALIAS leat_stub)
add_library(leat::images ALIAS leat_stub)
add_library(leat::tables ALIAS leat_stub)
add_library(leat::text ALIAS leat_stub)
add_library(leat::remote ALIAS leat_stub)
"""
stub_of_mpi = """add_library(leat_mpi_stub INTERFACE)
add_library(leat::mpi ALIAS leat_mpi_stub)
"""
mpi_where_asked = f'if("mpi" IN_LIST leat_FIND_COMPONENTS)\n{stub_of_mpi}endif()\n'
project = """cmake_minimum_required(VERSION 3.25)
set(CMAKE_CXX_COMPILER_FORCED TRUE)
project(blocks LANGUAGES CXX)
"""


def cmake(folder, *arguments):
    complaints, blocks = [], of_language("cmake")
    for i, each in enumerate(blocks):
        place = pathlib.Path(folder) / str(i)
        for name, text in {"leat/CMakeLists.txt": stub + stub_of_mpi, "config/leat-config.cmake": stub + mpi_where_asked,
                           "main.cpp": "int main() {}\n"}.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)
        for package, target in {"Torch": "torch"}.items():  # of others
            (place / f"config/{package}Config.cmake").write_text(f"add_library({target} INTERFACE)\n")
        targets = set(re.findall(r"target_\w+\((\w+)", each.text)) - set(re.findall(r"add_(?:executable|library)\((\w+)", each.text))
        (place / "CMakeLists.txt").write_text(
            project + "".join(f"add_executable({target} main.cpp)\n" for target in sorted(targets)) + each.text)
        done = subprocess.run(["cmake", "--fresh", "-S", place, "-B", place / "build", f"-DCMAKE_PREFIX_PATH={place / 'config'}",
                               f"-DFETCHCONTENT_SOURCE_DIR_LEAT={place / 'leat'}", *arguments], capture_output=True, text=True)
        if done.returncode or "leat" not in each.text:
            complaints.append(f"{each.place}: CMake does not configure a project with these lines:\n{done.stderr}")
    return end(complaints, len(blocks), "blocks of CMake")


def main(arguments):
    checks = {"forms": forms, "cpp": cpp, "sh": sh, "cmake": cmake}
    if not arguments or arguments[0] not in checks:
        sys.exit(__doc__)
    return checks[arguments[0]](*arguments[1:])


sys.exit(main(sys.argv[1:]))
