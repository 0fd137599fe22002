"""Compares what viewers read of `rep export` with `rep --json`: for each recording and format, the totals of
each event, the number of samples and of threads, and each function's own weight; of speedscope, the own shares
of the hottest functions as its table shows them.

Usage: check.py REP FORMAT RECORDING…   FORMAT: perfetto, otlp, firefox or speedscope
"""

import collections
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time

# Threads that the Firefox Profiler is given; the others are joined.
MOST_THREADS = 500
# How much of a name is shown depends on the other functions, callers among them; what is mangled, speedscope demangles
# itself, and of very many names its page crashes.
NAMES = ["--demangle", "full"]
UNNAMED = re.compile(r"^(.*\+)?0x[0-9a-f]+$")


def is_unnamed(name):
    return bool(UNNAMED.match(name)) or name in ("", "[unknown]")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True).stdout


def report(rep, recording, *args):
    # A report without rows has status 1; so has an export of it.
    command = [rep, "--json", "--no-children", *NAMES, *args, recording]
    answer = subprocess.run(command, capture_output=True)
    return json.loads(answer.stdout) if answer.returncode == 0 else None


def expected(rep, recording):
    """Events of the recording: totals, threads, and the weights of functions."""
    functions = report(rep, recording, "--sort", "symbol,dso")
    if functions is None:
        return None
    threads = report(rep, recording, "--sort", "pid,tid")
    events = {}
    for event, by_thread in zip(functions["events"], threads["events"]):
        own, counts = collections.Counter(), collections.Counter()
        namesakes = collections.defaultdict(list)
        for row in event["rows"]:
            name = "unnamed" if is_unnamed(row["key"]["symbol"]) else row["key"]["symbol"]
            own[name] += row["period"]
            counts[name] += row["samples"]
            namesakes[name].append(row["period"])
        if event["samples"]:
            events[event["name"]] = {
                "samples": event["samples"],
                "period": event["period"],
                "threads": len(by_thread["rows"]),
                "functions": own,
                "counts": counts,
                "namesakes": namesakes,
            }
    return events


def of_perfetto(path):
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

    trace = protos.Trace()
    trace.ParseFromString(open(path, "rb").read())
    events, sequences = {}, {}
    for packet in trace.packet:
        key = packet.trusted_packet_sequence_id
        if packet.HasField("trace_packet_defaults"):
            name = packet.trace_packet_defaults.perf_sample_defaults.timebase.name
            found = {"samples": 0, "period": 0, "threads": set(), "functions": collections.Counter()}
            sequences[key] = (found, {}, {}, {}, collections.Counter())
            events[name] = found
        if packet.HasField("interned_data"):
            _, functions, frames, stacks, _ = sequences[key]
            data = packet.interned_data
            functions.update((one.iid, one.str.decode()) for one in data.function_names)
            frames.update((one.iid, functions[one.function_name_id]) for one in data.frames)
            stacks.update((one.iid, [frames[frame] for frame in one.frame_ids]) for one in data.callstacks)
        if packet.HasField("perf_sample"):
            found, _, _, stacks, counts = sequences[key]
            sample = packet.perf_sample
            period = sample.timebase_count - counts[sample.cpu]
            counts[sample.cpu] = sample.timebase_count
            found["samples"] += 1
            found["period"] += period
            found["threads"].add((sample.pid, sample.tid))
            name = stacks[sample.callstack_iid][-1] if sample.callstack_iid else ""
            found["functions"]["unnamed" if is_unnamed(name) else name] += period
    return events


def of_otlp(path):
    from opentelemetry.proto.profiles.v1development import profiles_pb2 as protos

    data = protos.ProfilesData()
    data.ParseFromString(open(path, "rb").read())
    tables = data.dictionary
    events = collections.defaultdict(
        lambda: {"samples": 0, "period": 0, "threads": set(), "functions": collections.Counter()}
    )
    single = None
    for resource in data.resource_profiles:
        pid = {one.key: one.value for one in resource.resource.attributes}.get("process.pid")
        for profile in resource.scope_profiles[0].profiles:
            name = tables.string_table[profile.sample_type.type_strindex]
            for sample in profile.samples:
                if name == "samples" or name.endswith(".samples"):
                    event = single if name == "samples" else name.removesuffix(".samples")
                    events[event]["samples"] += sum(sample.values)
                    continue
                single = name
                found = events[name]
                found["period"] += sum(sample.values)
                tids = [
                    tables.attribute_table[index].value.int_value
                    for index in sample.attribute_indices
                    if tables.string_table[tables.attribute_table[index].key_strindex] == "thread.id"
                ]
                found["threads"].add((pid.int_value if pid else -1, *tids))
                stack = tables.stack_table[sample.stack_index].location_indices
                lines = tables.location_table[stack[0]].lines if stack else []
                function = tables.function_table[lines[0].function_index] if lines else None
                name_of = tables.string_table[function.name_strindex] if function else ""
                found["functions"]["unnamed" if is_unnamed(name_of) else name_of] += sum(sample.values)
    return dict(events)


def profiler(*words):
    """Asks the command line of the Firefox Profiler, which upgrades a file to its newest version."""
    return run(os.environ.get("PROFILER_CLI", "profiler-cli"), *words)


def load(path):
    """Loads a file; the tool's own patience is half a second."""
    for _ in range(20):
        if subprocess.run(
            [os.environ.get("PROFILER_CLI", "profiler-cli"), "load", path], capture_output=True
        ).returncode == 0:
            return
        time.sleep(3)
        if subprocess.run(
            [os.environ.get("PROFILER_CLI", "profiler-cli"), "profile", "info"], capture_output=True
        ).returncode == 0:
            return
    raise RuntimeError("the profiler does not start")


def of_firefox(path, events):
    """Weights are numbers of samples or periods: `samples` and `period` are both their sum."""
    found = {
        name: {"samples": 0, "period": 0, "threads": set(), "functions": collections.Counter()}
        for name in events
    }
    load(path)
    handles = collections.defaultdict(list)
    try:
        for thread in json.loads(profiler("thread", "list", "--json"))["threads"]:
            named = [name for name in events if thread["name"].endswith(f"({name})")]
            name = named[0] if named else next(iter(events))
            is_idle = thread["processName"] == "swapper" and thread["pid"].split(".")[0] == "0"
            tid = 0 if is_idle else thread["tid"].split(".")[0]
            found[name]["threads"].add((thread["pid"].split(".")[0], tid))
            handles[name].append(thread["threadHandle"])
        for name, threads in handles.items():
            event = found[name]
            # Several threads are summed up.
            words = ["--thread", ",".join(threads), "--limit", "0", "--include-idle", "--json"]
            for function in json.loads(profiler("thread", "functions", *words))["functions"]:
                weight = function["selfSamples"]
                function = "unnamed" if is_unnamed(function["name"]) else function["name"]
                event["functions"][function] += weight
                event["samples"] += weight
                event["period"] += weight
    finally:
        profiler("stop", "--all")
    return found


def differences_in_speedscope(path, events):
    """Returns what speedscope shows otherwise than `rep`; it shows two digits of a share."""
    script = os.path.join(os.path.dirname(__file__), "speedscope.mjs")
    shown = json.loads(run("node", script, path))
    named = [profile["name"] for profile in json.load(open(path))["profiles"]]
    found = [f"speedscope: {error}" for error in shown["errors"]]
    for name, rows in zip(named, shown["profiles"]):
        # Events without samples have profiles, too.
        event = events.get(name, {"period": 0, "namesakes": {}})
        for function, percent in rows:
            if is_unnamed(function):
                continue
            # Functions of different modules have rows of their own, and the table does not name the modules.
            shares = [100 * own / max(event["period"], 1) for own in event["namesakes"].get(function, [0])]
            digit = 10.0 ** (math.floor(math.log10(percent)) - 1) if percent > 0 else 0.01
            if all(abs(share - percent) > 0.51 * digit for share in shares):
                found.append(f"{name}: {function} {percent} %, not {shares} %")
        if event["period"] and not rows:
            found.append(f"{name}: no functions are shown")
    return found


def differences_of(name, got, event, form, are_joined):
    """Returns what differs of an event. Of very many threads, those with few samples may be joined."""
    kinds = ["samples", "period"]
    functions = event["functions"]
    if form == "firefox":
        kinds = ["samples"] if got["samples"] == event["samples"] else ["period"]
        functions = event["counts"] if kinds == ["samples"] else functions
    found = [
        f"{name}: {kind} {got[kind]}, not {event[kind]}" for kind in kinds if got[kind] != event[kind]
    ]
    if len(got["threads"]) != event["threads"] and not (are_joined and len(got["threads"]) < event["threads"]):
        found.append(f"{name}: threads {len(got['threads'])}, not {event['threads']}")
    for function in set(functions) | set(got["functions"]):
        pair = (got["functions"][function], functions[function])
        if pair[0] != pair[1]:
            found.append(f"{name}: {function} {pair[0]}, not {pair[1]}")
    return found


def compared(rep, form, recording, path):
    """Returns what differs; `None` if the recording has no samples."""
    wanted = expected(rep, recording)
    labels = {"otlp": ["--labels", "comm,tid"], "speedscope": ["--labels", "none"]}.get(form, [])
    command = [rep, "export", "--format", form, "--no-inline", *NAMES, *labels, "-o", path, recording]
    written = subprocess.run(command, capture_output=True)
    if not wanted:
        return None
    if written.returncode:
        return [written.stderr.decode()]
    samples = sum(event["samples"] for event in wanted.values())
    threads = max(event["threads"] for event in wanted.values())
    functions = sum(len(event["functions"]) for event in wanted.values())
    print(f"{form} {os.path.basename(recording)}: {samples} samples, {threads} threads, {functions} functions")
    if form == "speedscope":
        return differences_in_speedscope(path, wanted)
    readers = {"perfetto": of_perfetto, "otlp": of_otlp}
    found = readers[form](path) if form in readers else of_firefox(path, wanted)
    differences = []
    are_joined = form == "firefox" and sum(event["threads"] for event in wanted.values()) > MOST_THREADS
    for name, event in wanted.items():
        if name not in found:
            differences.append(f"{name} is missing")
            continue
        differences.extend(differences_of(name, found[name], event, form, are_joined))
    return differences


def main(rep, form, *recordings):
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for recording in recordings:
            differences = compared(rep, form, recording, os.path.join(folder, "out"))
            state = "no samples" if differences is None else "equal" if not differences else "differs"
            print(f"  {state}", *(differences or [])[:5], sep="\n  ")
            failed |= bool(differences)
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
