"""The virtual environment that the peers are installed into, outside the repository."""

import os
import pathlib
import subprocess
import sys
import venv

cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
usual_place = cache / "leat-peers"


def say(*words):
    print(f"{pathlib.Path(sys.argv[0]).name}:", *words, file=sys.stderr, flush=True)


def last_words(text, lines=3):
    """The end of an error: what a report can show of it."""
    told = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return " | ".join(told[-lines:])[:600] or "nothing was said"


def make(place):
    python = place / "bin" / "python"
    if not python.exists():
        say(f"makes a virtual environment in {place}; all peers together take about 9 GB")
        venv.create(place, with_pip=True)
    return python


def install(python, contestants):
    """Installs each, and says of those that cannot be used why not: {name: error}."""
    missing = {}
    for each in contestants:
        if each.check is None:
            continue
        found = trouble(python, each.check)
        if found is not None or "--force-reinstall" in each.packages:
            say(f"installs {' '.join(each.packages)} for {each.name}")
            done = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *each.packages],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            found = trouble(python, each.check) if done.returncode == 0 else last_words(done.stdout)
        if found is not None:
            missing[each.name] = found + (f" (needs {each.needs})" if each.needs else "")
            say(f"leaves out {each.name}: {missing[each.name]}")
    return missing


def start_again(place, packages, check):
    """Goes on as the same command in the environment, with these packages; ends here where they cannot be had."""
    program = pathlib.Path(sys.argv[0]).name
    by_hand = f"{place / 'bin' / 'python'} -m pip install {' '.join(packages)}"
    if pathlib.Path(sys.prefix) == place:
        sys.exit(f"{program}: {trouble(sys.executable, check)}; {by_hand}")
    try:
        python = make(place)
    except (OSError, subprocess.CalledProcessError) as problem:
        sys.exit(f"{program}: no virtual environment in {place}: {problem}; apt-get install python3-venv")
    if trouble(python, check) is not None:
        say(f"installs {' '.join(packages)}")
        done = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0 or trouble(python, check) is not None:
            sys.exit(f"{program}: {' and '.join(packages)} cannot be installed: {last_words(done.stdout, 1)}; {by_hand}")
    os.execv(python, [str(python), *sys.argv])


def trouble(python, check):
    done = subprocess.run([python, "-c", check], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return None if done.returncode == 0 else last_words(done.stdout, 1)
