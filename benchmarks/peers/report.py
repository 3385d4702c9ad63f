"""From what was measured to what is read: medians, ratios, Markdown, and the README's table."""

import statistics

from contestants import image_jobs, jobs

begin_mark = "<!-- benchmarks/peers/run writes from here -->"
end_mark = "<!-- to here -->"


def rate(run):
    return run["items"] / run["seconds"]


def rate_per_cpu(run):
    # llm.c's loader and the like can take less than the clock shows.
    return run["items"] / max(run["cpu_s"], 1e-9)


def spread(values):
    return statistics.median(values), min(values), max(values)


def number(value):
    """Three digits or more: what a median of three rounds can bear."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 1e-3 else f"{value:.1g}"


def spread_text(values):
    middle, low, high = spread(values)
    return f"{number(middle)} ({number(low)}..{number(high)})"


def mib(value):
    return "" if value is None else f"{value / 2**20:,.0f}"


def ratios(ours, theirs, of):
    """Ours to theirs, within each round: what slowed the machine slowed both."""
    return [of(a) / of(b) for a, b in zip(ours["runs"], theirs["runs"])]


def label(row):
    return row["name"] if row["workers"] is None else f"{row['name']}, {row['workers_text']}"


def rows_of(results, job):
    rows = [row for row in results["rows"] if row["job"] == job and row["runs"]]
    return sorted(rows, key=lambda row: -statistics.median(map(rate_per_cpu, row["runs"])))


def best(rows, name, of):
    """Of several settings of a loader, the one that is best by this measure."""
    mine = [row for row in rows if row["name"] == name]
    return max(mine, key=lambda row: statistics.median(map(of, row["runs"]))) if mine else None


def names(rows):
    return list(dict.fromkeys(row["name"] for row in rows))


def table(heading, lines):
    return ["| " + " | ".join(heading) + " |", "|" + " --- |" * len(heading), *("| " + " | ".join(line) + " |" for line in lines)]


def beside_table(what, rates, own):
    """A page of rates by name: medians with the lowest and the highest, and how many times as much leat does.

    own   of each name, that of leat's rates
    """
    lines = [f"| | {what} | leat over this |", "| --- | --- | --- |"]
    for name, runs in rates.items():
        middle = statistics.median(runs)
        lines.append(f"| {name} | {middle:.1f} ({min(runs):.1f} to {max(runs):.1f}) | {statistics.median(rates[own(name)]) / middle:.2f} |")
    return "\n".join(lines) + "\n"


def give(text, out):
    """Into the file, or printed."""
    if out:
        out.write_text(text)
    else:
        print(text, end="")


def job_table(results, job):
    rows = rows_of(results, job)
    what = "images" if job in image_jobs else "batches"
    heading = ["", f"{what} per CPU-second", f"{what}/s", "CPU-s per 1,000", "first batch, s", "memory, MiB"]
    lines = []
    for row in rows:
        runs = row["runs"]
        lines.append([
            label(row),
            spread_text([*map(rate_per_cpu, runs)]),
            spread_text([*map(rate, runs)]),
            number(statistics.median(1000 / rate_per_cpu(run) for run in runs)),
            number(statistics.median(run["first_batch_s"] for run in runs)),
            mib(row.get("memory_bytes")),
        ])
    return table(heading, lines)


def ratio_table(results, job):
    """leat / each peer, at the peer's best setting for that column."""
    rows = rows_of(results, job)
    ours = [name for name in names(rows) if name.startswith("leat")]
    lines = []
    for our in ours:
        mine = next(row for row in rows if row["name"] == our)
        for name in names(rows):
            if name in ours:
                continue
            cells = []
            for of in (rate_per_cpu, rate):
                theirs = best(rows, name, of)
                middle, low, high = spread(ratios(mine, theirs, of))
                cells.append(f"{middle:.2f} ({low:.2f}..{high:.2f})")
            lines.append([f"{our} / {name}", *cells])
    return table(["", "per CPU-second", "per second"], lines) if lines else []


def photos_text(photos):
    return (f"{photos['count']:,} photographs, {photos['classes']} classes, mean size {photos['mean_bytes'] / 1000:.0f} KB, "
            f"{photos['mean_megapixels']:.2f} megapixels")


def machine_text(machine):
    return f"{machine['cpus']} CPUs, {machine['cpu']}, {machine['memory_gib']:.0f} GiB; {machine['system']}, kernel {machine['kernel']}"


def settings_lines(results):
    told = {}
    for row in results["rows"]:
        if not row["runs"]:
            continue
        run = row["runs"][-1]
        versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
        text = f"- **{label(row)}** ({row['job']}): {'; '.join(filter(None, [versions, run['settings']]))}"
        told.setdefault(text, None)
    return list(told)


def look_lines(results, job):
    rows = [row for row in results["rows"] if row["job"] == job and row.get("look")]
    seen = {}
    for row in rows:
        seen.setdefault(row["name"], row["look"])
    return table(["", "mean of R, G, B", "deviation of R, G, B"],
                 [[name, ", ".join(f"{v:.2f}" for v in look["mean"]), ", ".join(f"{v:.2f}" for v in look["deviation"])]
                  for name, look in seen.items()]) if seen else []


def tuning_lines(results):
    tried = {}
    for each in results["tuning"]:
        tried.setdefault((each["job"], each["name"]), []).append(each)
    lines = []
    for (job, name), of in tried.items():
        if len(of) > 1:
            counts = "; ".join(f"{each['workers']}: {number(each['per_s'])}/s, {number(each['per_cpu_s'])} per CPU-second" for each in of)
            lines.append(f"- {name} ({job}): {counts}")
    return lines


def page(results):
    """The whole of benchmarks/results/peers-<date>.md."""
    lines = [
        f"# leat beside its peers, {results['date']}",
        "",
        f"- machine: {machine_text(results['machine'])}; load average {results['machine']['load']} when it began",
        f"- leat: {results['leat']}; Python {results['machine']['python']}",
        f"- photographs: {photos_text(results['photos'])}; page cache warm",
        f"- batches of {results['batch_size']} images, of 12 x 1,024 tokens; {results['rounds']} rounds, one loader after "
        "another in each; median (lowest..highest)",
        *(f"- {note}" for note in results.get("notes", [])),
        "",
        f"```sh\n{results['command']}\n```",
        "",
    ]
    for job, what in jobs.items():
        if not rows_of(results, job):
            continue
        lines += [f"## {what[0].upper()}{what[1:]}", "", *job_table(results, job), ""]
        ratio = ratio_table(results, job)
        if ratio:
            lines += ["leat to each, within a round; each peer at its best setting for the column:", "", *ratio, ""]
        look = look_lines(results, job)
        if look:
            lines += ["That it is the same job, from another run of each (whose batches are not the same pictures):", "", *look, ""]
    if results["missing"]:
        lines += ["## Not measured", "", *(f"- {name}: {why}" for name, why in results["missing"].items()), ""]
    lines += [
        "## How",
        "",
        "- Each run is a process of its own. A peer's rates count from one batch, after "
        f"{results['warm']} images, over {results['images']} more: neither its start nor its end is in them. leat's count from "
        "before the loader is built (images/s) and from the start of the process (CPU) to the end of the last epoch.",
        "- CPU is user and system time of the process and all that it started. The first batch counts from the start of the "
        "process, Python and imports with it.",
        "- Memory is the most that a run of its own held: anonymous and shared memory of the whole process tree, shared pages "
        "once; pages of files are left out.",
        "- Crops have 0.08 to 1 of the area and an aspect of 3/4 to 4/3, drawn as each loader draws them; all resize "
        "antialiased, with a triangle (bilinear) kernel, but FFCV (area) and MLX Data (stb's).",
        "- A setting is tuned by one run of each number of workers, before the rounds: the best by images/s, and, where it is "
        "another by more than 3 %, the best by images per CPU-second.",
        "",
        "### Settings",
        "",
        *settings_lines(results),
        "",
        "### Tuning (number of workers: rate)",
        "",
        *tuning_lines(results),
        "",
    ]
    return "\n".join(lines)


def is_ours(name):
    return name == "leat" or name.startswith(("leat, ", "leat from "))


def readme_table(results, source):
    """What the README shows: the f32 job in full, a line for each of the others."""
    lines = [
        f"{photos_text(results['photos'])}, to random 224-pixel crops, flipped, normalised, f32 NCHW, batches of "
        f"{results['batch_size']}; page cache warm; {machine_text(results['machine'])}; medians of {results['rounds']} interleaved "
        "rounds, each loader at its best setting for the column.",
        "",
    ]
    lines = wrapped(lines[0]) + [""]
    rows = rows_of(results, "f32")
    cells = []
    for name in names(rows):
        by_cpu, by_time = best(rows, name, rate_per_cpu), best(rows, name, rate)
        cells.append([
            f"**{name}**" if name == "leat" else name,
            number(statistics.median(map(rate_per_cpu, by_cpu["runs"]))),
            number(statistics.median(map(rate, by_time["runs"]))),
            number(statistics.median(run["first_batch_s"] for run in by_time["runs"])),
            mib(by_time.get("memory_bytes")),
        ])
    lines += table(["", "images per CPU-second", "images/s", "first batch, s", "memory, MiB"], cells)
    lines.append("")
    told = []
    for job, what in (("u8", "images, u8 NHWC"), ("eval", "images, evaluation, u8 NHWC"), ("tokens", "batches of 12 x 1,024 tokens, at random"),
                      ("sequence", "batches of 12 x 1,024 tokens in order, i32")):
        rows = rows_of(results, job)
        if not rows:
            continue
        rates = {name: number(statistics.median(map(rate_per_cpu, best(rows, name, rate_per_cpu)["runs"]))) for name in names(rows)}
        ours = [f"{rate} ({name[4:].strip(', ')})" if name != "leat" else rate for name, rate in rates.items() if is_ours(name)]
        others = [f"{name} {rate}" for name, rate in rates.items() if not is_ours(name)]
        told.append([what, ", ".join(ours), ", ".join(others)])
    lines += table(["per CPU-second", "leat", "others"], told) + [""] if told else []
    if results["missing"]:
        lines += wrapped("Not measured, see there: " + ", ".join(results["missing"]) + ".") + [""]
    lines += wrapped(f"[{source}]({source}) has the spreads, the settings and how it was measured.")
    return "\n".join(lines)


def wrapped(text, width=120):
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return lines


def between_marks(text, table_text):
    """`text` with what stands between the two marks replaced."""
    head, mark, rest = text.partition(begin_mark)
    _, end, tail = rest.partition(end_mark)
    if not mark or not end:
        raise ValueError(f"there is no place for the table: {begin_mark} and {end_mark}")
    return f"{head}{begin_mark}\n\n{table_text}\n\n{end_mark}{tail}"
