"""`--format`: documented keys, valid SARIF, annotations as GitHub's runner reads them, hostile names, the workflow."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import xbuild as xb
from tests.commands.command_line import usage, xbuild
from tests.commands.conftest import PROGRAMS
from tests.commands.test_cli_shard import TEXT as CONFLICTS
from tests.fuzzing.names import HOSTILE, PLACES, text_of
from xbuild.files.targets import load

ROOT = Path(__file__).parents[2]
EXAMPLES, DUMPS = ROOT / "examples", ROOT / "tests/data/dumps"
RING, DEPENDS, PIPELINE = (f"{EXAMPLES}/deadlocks/{name}.py:program" for name in ("ring", "data_parallel", "pipeline"))
BLOCK = f"{EXAMPLES}/sharding/block.py"

FILES = {
    "ok.hlo": "HloModule ok\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] negate(x)\n}\n",
    "bad.hlo": "HloModule bad\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] negated(x)\n}\n",
    "nan.hlo": (
        "HloModule quotient\nENTRY e {\n  x = f32[2] parameter(0)\n  z = f32[2] subtract(x, x)\n"
        "  ROOT y = f32[2] divide(x, z)\n}\n"
    ),
    "double.hlo": (
        "HloModule double\nENTRY e {\n  x = f32[2] parameter(0)\n  z = f32[2] add(x, x)\n"
        "  ROOT y = f32[2] multiply(x, z)\n}\n"
    ),
    "large.hlo": "HloModule large\nENTRY e {\n  x = f32[2048] parameter(0)\n  ROOT y = f32[2048] negate(x)\n}\n",
    "shards.hlo": CONFLICTS,
    "loop.hlo": (
        "HloModule loop\ncond {\n  n = s32[] parameter(0)\n  one = s32[] constant(1)\n"
        "  ROOT c = pred[] compare(n, one), direction=GT\n}\nbody {\n  n = s32[] parameter(0)\n"
        "  ROOT h = s32[] shift-right-logical(n, n)\n}\nENTRY e {\n  a = s32[] parameter(0)\n"
        "  ROOT w = s32[] while(a), condition=cond, body=body\n}\n"
    ),
    "spin.hlo": (
        "HloModule spin\ncond {\n  n = s32[] parameter(0)\n  ROOT c = pred[] compare(n, n), direction=EQ\n}\n"
        "body {\n  n = s32[] parameter(0)\n  ROOT h = s32[] negate(n)\n}\nENTRY e {\n  a = s32[] parameter(0)\n"
        "  ROOT w = s32[] while(a), condition=cond, body=body\n}\n"
    ),
    "small.json": json.dumps({"flops": 1e12, "memory_bandwidth": 1e9, "memory": 100, "links": {"": {"alpha": 1e-6,
                              "bandwidth": 1e9}}}),
}  # fmt: skip

RUNS: dict[str, list[str]] = {
    "check": [
        "check ok.hlo", f"check {RING}", f"check {DEPENDS}", f"check {PIPELINE}", "check shards.hlo", "check bad.hlo",
        f"check ok.hlo bad.hlo {RING}", f"check {DUMPS}/job_hangs", f"check {DUMPS}/jax_0.10.2/xla --stage before",
    ],
    "lint": ["lint ok.hlo", "lint shards.hlo", "lint ok.hlo shards.hlo", "lint bad.hlo"],
    "cost": [
        "cost ok.hlo", "cost loop.hlo", f"cost {BLOCK}:tensor --partition --machine v5e --by op", "cost bad.hlo",
        "cost large.hlo --machine small.json",
    ],
    "equivalent": [
        "equivalent ok.hlo ok.hlo", "equivalent nan.hlo double.hlo", "equivalent bad.hlo ok.hlo",
        "equivalent large.hlo large.hlo --extents smaller",
    ],
    "prove": ["prove ok.hlo ok.hlo", "prove nan.hlo double.hlo", f"prove {DUMPS}/jax_0.10.2/xla"],
    "prove.by_pass": [f"prove {DUMPS}/passes --by pass"],
    "reduce": [f"reduce {RING} --while deadlock --jobs 1", "reduce bad.hlo --while deadlock"],
    "shard": ["shard shards.hlo", f"shard {BLOCK}:full", "shard bad.hlo", "shard ok.hlo"],
    "shard.explain": ["shard shards.hlo --explain y", f"shard {BLOCK}:full --explain all-gather.39"],
    "shard.compare": [f"shard {BLOCK}:full --compare tensor"],
    "run": [
        "run ok.hlo --random 0", "run large.hlo --random 0", "run nan.hlo --random 0 --strict",
        f"run {RING} --random 0", f"run {EXAMPLES}/deadlocks/infeed_loop.py:program --random 0",
        "run spin.hlo --random 0 --max-trips 9", f"run {BLOCK}:tensor --partition --random 0", "run bad.hlo --random 0",
    ],
}  # fmt: skip
EACH = [(schema, run) for schema, runs in RUNS.items() for run in runs]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def document(run: str, *options: str) -> dict[str, Any]:
    """The JSON of a command; every number of it is one that JSON has."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    found: dict[str, Any] = json.loads(xbuild(*run.split(), *options).stdout, parse_constant=refuse)
    return found


# ----------------------------------------------------------------------------
# JSON: the keys that docs/formats.md lists are those that are printed


def paths(value: Any, at: str = "") -> Iterator[str]:
    """The path of each number, text, truth value and null of a document."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, f"{at}.{key}" if at else key)
    elif isinstance(value, list):
        for inner in value:
            yield from paths(inner, f"{at}[]")
    else:
        yield at


def documented() -> dict[str, list[str]]:
    """The key patterns of each table of the page, by the schema."""
    found: dict[str, list[str]] = {}
    schema = ""
    for line in (ROOT / "docs/formats.md").read_text().splitlines():
        if line.startswith("### "):
            schema = line[4:].strip("`") if "`" in line else ""
        elif named := re.match(r"`(?:prove|shard) .*`xbuild\.(\w+\.\w+)/1`", line):
            schema = named[1]
        elif line.startswith("## "):
            schema = "-"
        elif line.startswith("| `") and schema != "-":
            first, *rest = re.findall(r"`([^`]+)`", line.split("|")[1])
            inside = first.rpartition(".")[0]
            keys = [first, *(f"{inside}{key}" if key.startswith(".") else key for key in rest)]
            found.setdefault(schema, []).extend(keys)
    return found


def matches(pattern: str, path: str) -> bool:
    """Whether a path is one of a pattern: `*` is any name, and `.**` is anything that follows, or nothing."""
    expression = re.escape(pattern).replace(r"\.\*\*", r"(?:[.\[].*)?").replace(r"\*", r"[^\[\]]*")
    return re.fullmatch(expression, path) is not None


@pytest.mark.parametrize("schema", RUNS)
@pytest.mark.usefixtures("folder")
def test_documented_keys_are_printed(schema: str) -> None:
    table = documented()
    patterns = [*table[""], *table[schema]]
    if schema.startswith("prove"):
        patterns += [*table["equivalent"], *table["prove"]]
    if schema in ("check", "lint", "prove"):
        patterns += [f"programs[].{pattern}" for pattern in patterns if not pattern.startswith("pro")]
    if schema == "run":
        patterns += [f"verdict.{pattern}" for pattern in table["check"]]
    seen: set[str] = set()
    for run in RUNS[schema]:
        found = document(run, "--json")
        assert found["schema"] == f"xbuild.{schema.split('.')[0]}/1" or found["schema"] == f"xbuild.{schema}/1"
        for path in paths(found):
            fitting = {pattern for pattern in patterns if matches(pattern, path)}
            outer = {pattern for pattern in patterns if pattern.startswith((f"{path}.", f"{path}["))}
            assert fitting | outer, f"docs/formats.md lacks {path} of {run}"
            seen |= fitting
    if schema != "lint":
        never = {*table[schema]} - seen - RARE
        assert never == set(), "documented keys that no run prints"


RARE = {
    "findings[].facts[]", "memory.alive[].index[]", "notes[]", "undecided[]", "compared[].device", "compared[].output",
    "compared[].sides[]", "compared[].same", "compared[].ulps", "compared[].index.**", "compared[].values.**",
    "compared[].note", "stopped.parting[]", "stopped.devices[].missing[]", "findings[].trips[]",
    "partitioned.refused", "kinds[]", "example.arguments.**", "layouts[]", "between[]", "unread[]",
    "changes[].before.*",
}  # fmt: skip
"""Keys that only programs print that take long to make: they are those of lists that are often empty."""


@pytest.mark.usefixtures("folder")
def test_json_is_the_same_as_format_json_and_keeps_its_keys() -> None:
    for run in ("check ok.hlo", f"check {RING}", "cost ok.hlo", "shard shards.hlo", "equivalent ok.hlo nan.hlo"):
        assert document(run, "--json") == document(run, "--format", "json")
    verdict = xb.check(load(RING))
    found = document(f"check {RING}", "--json")
    assert {key: found[key] for key in verdict.to_dict()} == json.loads(json.dumps(verdict.to_dict()))
    assert "cannot be used together" in usage(xbuild("check", "ok.hlo", "--json", "--format", "sarif"))
    assert "cannot be used together" in usage(xbuild("check", "ok.hlo", "--format", "github", "--json"))


def test_devices_with_the_same_order_share_it() -> None:
    text = FILES["ok.hlo"].replace("HloModule ok", "HloModule ok, num_partitions=512")
    facts = xb.check(xb.parse_hlo(text)).to_dict()
    assert facts["schedule"] == {"0-511": ["x", "y"]}
    other = FILES["ok.hlo"].replace("x", "z")
    one, two = (xb.parse_hlo(each) for each in (FILES["ok.hlo"], other))
    group = xb.ModuleGroup({device: two if device in (1, 5) else one for device in range(7)})
    assert xb.check(group).to_dict()["schedule"] == {"0,2-4,6": ["x", "y"], "1,5": ["z", "y"]}


@pytest.mark.parametrize(("schema", "run"), EACH, ids=[run.replace(str(ROOT), "") for _, run in EACH])
@pytest.mark.usefixtures("folder")
def test_each_format_ends_like_text(schema: str, run: str) -> None:
    code = xbuild(*run.split()).exit_code
    for form in ("json", "sarif", "github"):
        assert xbuild(*run.split(), "--format", form).exit_code == code


@pytest.mark.usefixtures("folder")
def test_wrong_use_and_limits_leave_stdout_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    for words in (["check", "absent.hlo"], ["cost", "ok.hlo", "--timeline"], ["run", "ok.hlo"]):
        for form in ("json", "sarif", "github"):
            assert usage(xbuild(*words, "--format", form))

    def run_out_of_memory(program: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr("xbuild.cli.check.module_of", run_out_of_memory)
    done = xbuild("check", "ok.hlo", "--json")
    assert (done.exit_code, done.stdout) == (3, "")


@pytest.mark.parametrize(
    ("name", "rule", "message", "code"),
    [
        ("refused", "dimension_mismatch", "add: lhs is f32[2] and rhs is f32[3]: ", "builder.build(xb.ops.add(x, y))"),
        ("fails", "raised", "ZeroDivisionError: division by zero", "return inner / 0"),
    ],
)
def test_an_error_in_a_python_target_has_its_line(
    name: str, rule: str, message: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("programs.py").write_text(PROGRAMS)
    (issue,) = document(f"check programs.py:{name}", "--json")["issues"]
    assert (issue["rule"], issue["file"], issue["function"]) == (rule, "programs.py", name)
    assert issue["message"].startswith(message)
    assert code in PROGRAMS.splitlines()[issue["line"] - 1]


# ----------------------------------------------------------------------------
# SARIF: logs are valid, and each result has a rule and a place


@pytest.fixture(scope="module")
def schema() -> Any:
    """The schema of SARIF 2.1.0 without its descriptions, from @microsoft/jest-sarif 1.0.0-beta.0 (MIT licence)."""
    jsonschema = pytest.importorskip("jsonschema")
    facts = json.loads((ROOT / "tests/data/sarif-2.1.0-rtm.5.json").read_text())
    return jsonschema.Draft4Validator(facts)


@pytest.mark.parametrize(("_", "run"), EACH, ids=[run.replace(str(ROOT), "") for _, run in EACH])
@pytest.mark.usefixtures("folder")
def test_sarif_is_valid(_: str, run: str, schema: Any) -> None:
    log = document(run, "--format", "sarif")
    assert [error.message for error in schema.iter_errors(log)] == []
    issues = document(run, "--format", "json")["issues"]
    (sarif,) = log["runs"]
    assert [(each["ruleId"], each["level"]) for each in sarif["results"]] == [(i["rule"], i["level"]) for i in issues]
    rules = sarif["tool"]["driver"]["rules"]
    for result in sarif["results"]:
        rule = rules[result["ruleIndex"]]
        assert rule["id"] == result["ruleId"]
        assert rule["help"]["text"] != rule["id"], f"xbuild explain {rule['id']} explains nothing"
        assert rule["shortDescription"]["text"].endswith(".")
        assert rule["fullDescription"]["text"].startswith(rule["shortDescription"]["text"])
        (location,) = result["locations"]
        assert location["physicalLocation"]["artifactLocation"]["uri"]


def test_the_schema_finds_faults(schema: Any, folder: Path) -> None:
    log = document(f"check {RING}", "--format", "sarif")
    log["runs"][0]["results"][0]["level"] = "fatal"
    del log["runs"][0]["tool"]["driver"]["name"]
    assert len([*schema.iter_errors(log)]) == 2


def test_a_cycle_has_the_lines_of_its_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (result,) = document(f"check {PIPELINE}", "--format", "sarif")["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "examples/deadlocks/pipeline.py", "uriBaseId": "%SRCROOT%"}
    places = [place, *(each["physicalLocation"] for each in result["relatedLocations"])]
    lines = [each["region"]["startLine"] for each in places]
    source = (ROOT / "examples/deadlocks/pipeline.py").read_text().splitlines()
    assert len(lines) == len({*lines}) >= 3
    assert all(re.search("send|recv", source[line - 1]) for line in lines)
    assert "waits for" in result["relatedLocations"][0]["message"]["text"]


# ----------------------------------------------------------------------------
# Annotations: as GitHub's runner reads the lines of a log


def command_of(line: str) -> tuple[str, dict[str, str], str] | None:
    """A line of a log as the runner reads it: the command, its properties and its data; None for any other line.

    Source: `ActionCommand.TryParseV2` of GitHub's actions/runner.
    """
    line = line.lstrip()
    end = line.find("::", 2)
    if not line.startswith("::") or end < 0:
        return ("##[", {}, line) if "##[" in line else None
    name, _, rest = line[2:end].partition(" ")
    properties = dict(pair.split("=", 1) for pair in rest.strip().split(",") if "=" in pair)
    data = line[end + 2 :]
    for code, letter in (("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
        data = data.replace(code, letter)
    for key, value in properties.items():
        for code, letter in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
            value = value.replace(code, letter)
        properties[key] = value
    return name, properties, data


@pytest.mark.parametrize(("_", "run"), EACH, ids=[run.replace(str(ROOT), "") for _, run in EACH])
@pytest.mark.usefixtures("folder")
def test_annotations_are_the_issues(_: str, run: str) -> None:
    issues = document(run, "--format", "json")["issues"]
    done = xbuild(*run.split(), "--format", "github")
    found = [command_of(line) for line in done.stdout.splitlines()]
    assert None not in found
    named = {"error": "error", "warning": "warning", "note": "notice"}
    assert [each[0] for each in found if each] == [named[issue["level"]] for issue in issues]
    for each, issue in zip(found, issues, strict=True):
        assert each is not None
        assert each[2].startswith(issue["message"])
        assert each[1]["title"] == f"xbuild {run.split()[0]}: {issue['rule']}"
        assert each[1].get("line") == (str(issue["line"]) if issue["line"] else None)
        assert each[1]["file"]
        assert (issue["fix"] or "") in each[2]
    assert [line for line in done.stderr.splitlines() if command_of(line)] == []


# ----------------------------------------------------------------------------
# Hostile names

MORE_HOSTILE = (
    "::error file=a::pwned", "\n::add-mask::pwned", "a\r\n::set-env name=PATH::pwned", "##[add-mask]pwned", "%0A::x::",
    "%250A", "a,title=pwned", "[click](https://example.invalid)", "[0](1)", "{0}{1}", "file:///etc/passwd", "../" * 9,
    "C:\\x", "a b?c#d", "%2e%2e/",
)  # fmt: skip
NAMES = (*HOSTILE, *MORE_HOSTILE)


def hostile_text() -> str:
    """A program in which every name is in the place of a source file and of a scope."""
    rows = [[NAMES[(n + place) % len(NAMES)] for place in range(len(PLACES))] for n in range(len(NAMES))]
    return text_of(rows, False)


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The path of a program with hostile names, which is hostile, too."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "\n::error::a%0A,b"
    folder.mkdir()
    path = folder / "##[add-mask]\x1b[2J\u202e.hlo"
    path.write_text(hostile_text(), encoding="ascii")
    return str(path)


@pytest.mark.parametrize("words", ["check {}", "check {} {}", "lint {}", "cost {}", "run {} --random 0 --strict",
                                   "equivalent {} ok.hlo", "shard {}", "check {}.none"])  # fmt: skip
def test_hostile_names_obey_each_format(words: str, hostile: str, schema: Any, folder: Path) -> None:
    given = [word.format(hostile) if "{" in word else word for word in words.split(" ")]
    for form in ("json", "sarif", "github"):
        done = xbuild(*given, "--format", form)
        assert done.exit_code in (0, 1, 2), done.output
        assert all(letter.isprintable() or letter in "\n\t" for letter in done.output)
        if form == "github":
            known = {"error", "warning", "notice"}
            assert all((command_of(line) or ("",))[0] in known for line in done.stdout.splitlines())
            assert [line for line in done.stderr.splitlines() if command_of(line)] == []
        elif done.exit_code != 2:
            log = json.loads(done.stdout)
            if form == "sarif":
                assert [error.message for error in schema.iter_errors(log)] == []


def test_a_job_of_github_reads_no_command_on_stderr(hostile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    done = xbuild("check", f"{hostile}.none")
    assert "add-mask" in done.stderr
    assert [line for line in done.stderr.splitlines() if command_of(line)] == []


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_an_issue_of_a_hostile_name_reads_back(name: str, schema: Any) -> None:
    from shape_inference.escaping import in_line, printable
    from xbuild.cli.formats import annotation, sarif
    from xbuild.core.graph import Source
    from xbuild.core.issues import Issue, RelatedPlace

    source = Source(name or "a", 3, name)
    related = (RelatedPlace(name, source),)
    issue = Issue("deadlock", "error", f"a{name}b", source, (name,), (0,), name, {name: [name]}, related)
    line = annotation("check", name, issue)
    assert line.replace("\t", "").isprintable()
    command, properties, data = command_of(line) or ("", {}, "")
    assert command == "error"
    assert properties.keys() <= {"file", "line", "title"}
    assert (properties["line"], properties["title"]) == ("3", "xbuild check: deadlock")
    assert data.startswith(printable(f"a{name}b"))
    assert properties["file"] == in_line(Path(name or "a").as_posix())
    log = sarif("check", [(name, issue)])
    assert [error.message for error in schema.iter_errors(log)] == []
    (result,) = log["runs"][0]["results"]
    assert re.sub("[\n\t]", "", result["message"]["text"]).isprintable()
    assert "](" not in result["message"]["text"]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert re.fullmatch(r"[\w.\-~%/:]+", place, re.ASCII)
    assert unquote(place.removeprefix("file://"), errors="surrogatepass") == Path(name or "a").as_posix()


# ----------------------------------------------------------------------------
# The workflow and the hooks, as the services run them


def steps() -> dict[str, str]:
    """The scripts of the example workflow, by the names of their steps."""
    text = (EXAMPLES / "ci/xbuild.yml").read_text()
    found = re.findall(r"- name: ([^\n]+)\n(?:        if: [^\n]+\n)?        run: \|\n((?:          [^\n]*\n)+)", text)
    return {name: re.sub(r"^ {10}", "", script, flags=re.MULTILINE) for name, script in found}


def shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A script of a step, run as the service does by default: `bash -e FILE`."""
    file = folder.parent / "step.sh"
    file.write_text(script)
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    return subprocess.run(["bash", "-e", str(file)], cwd=folder, env={"PATH": path, "HOME": str(folder)},
                          capture_output=True, text=True, check=False, timeout=300)  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("git") and shutil.which("bash")), reason="the steps are scripts of bash with git")
def test_the_workflow_runs(tmp_path: Path, schema: Any) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    for name in ("ok.hlo", "loop.hlo"):
        (repository / name).write_text(FILES[name])
    assert shell("git init -q . && git add .", repository).returncode == 0
    scripts = steps()
    assert {*scripts} == {"Install xbuild", "Check", "Write SARIF files"}
    done = shell(scripts["Check"], repository)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    (repository / "bad, one.hlo").write_text(FILES["bad.hlo"])
    shell("git add .", repository)
    done = shell(scripts["Check"], repository)
    assert done.returncode != 0
    (line,) = done.stdout.splitlines()
    assert command_of(line) == (
        "error",
        {"file": "bad, one.hlo", "line": "4", "title": "xbuild check: unknown_opcode"},
        "xbuild has no op 'negated'\nfix: did you mean 'negate'?",
    )
    assert shell(scripts["Write SARIF files"], repository).returncode == 0
    logs = {path.name: json.loads(path.read_text()) for path in (repository / "sarif").iterdir()}
    assert {*logs} == {"check.sarif", "lint.sarif"}
    assert [error.message for log in logs.values() for error in schema.iter_errors(log)] == []
    assert logs["check.sarif"]["runs"][0]["results"][0]["ruleId"] == "unknown_opcode"


def hooks() -> dict[str, dict[str, str]]:
    """The hooks of pre-commit by their ids, each with its fields."""
    text = (ROOT / ".pre-commit-hooks.yaml").read_text()
    rows = [dict(re.findall(r"^[- ] (\w+): (.+)$", part, re.MULTILINE)) for part in text.split("\n\n")]
    return {row["id"]: row for row in rows}


def test_hooks_take_the_files_of_a_commit(folder: Path) -> None:
    assert {*hooks()} == {"xbuild-check", "xbuild-lint"}
    for hook in hooks().values():
        program, *words = hook["entry"].split()
        assert (program, hook["language"]) == ("xbuild", "python")
        names = ["a.hlo", "b/c.mlir", "d.hlo.gz", "hlo.py", "e.hlox", "f.txt"]
        assert [name for name in names if re.search(hook["files"], name)] == names[:3]
        assert xbuild(*words, "ok.hlo", "shards.hlo").exit_code in (0, 1)
        assert xbuild(*words, "ok.hlo", "bad.hlo").exit_code == 1
