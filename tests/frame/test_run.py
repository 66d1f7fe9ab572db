"""The script `run`: what it decides, and what it says when it cannot go on. No test installs anything."""

import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import threading
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def run() -> ModuleType:
    """The script as a module, loaded without running it."""
    loader = importlib.machinery.SourceFileLoader("run_script", str(ROOT / "run"))
    spec = importlib.util.spec_from_loader("run_script", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture
def inputs(tmp_path: Path) -> list[Path]:
    """A pyproject.toml and a constraints.txt of no consequence."""
    files = [tmp_path / "pyproject.toml", tmp_path / "constraints.txt"]
    for file in files:
        file.write_text(f"# {file.name}\n", encoding="utf-8")
    return files


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """A folder that looks like an environment: it has bin/python."""
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").touch()
    return tmp_path / ".venv"


def test_oldest_python_is_the_one_pyproject_names(run):
    with (ROOT / "pyproject.toml").open("rb") as file:
        requires = tomllib.load(file)["project"]["requires-python"]
    assert requires == ">=" + ".".join(map(str, run.OLDEST_PYTHON))


def test_same_inputs_same_stamp(run, inputs, venv):
    assert run.wanted_stamp(venv, inputs, (3, 12, 1)) == run.wanted_stamp(venv, inputs, (3, 12, 9))


@pytest.mark.parametrize("changed", [0, 1])
def test_stamp_follows_each_input(run, inputs, venv, changed):
    before = run.wanted_stamp(venv, inputs, (3, 12))
    inputs[changed].write_text("changed\n", encoding="utf-8")
    assert run.wanted_stamp(venv, inputs, (3, 12)) != before


def test_stamp_does_not_confuse_a_line_that_moved_from_one_file_to_the_other(run, inputs, venv):
    inputs[0].write_text("a\nb\n", encoding="utf-8")
    inputs[1].write_text("c\n", encoding="utf-8")
    before = run.wanted_stamp(venv, inputs, (3, 12))
    inputs[0].write_text("a\n", encoding="utf-8")
    inputs[1].write_text("b\nc\n", encoding="utf-8")
    assert run.wanted_stamp(venv, inputs, (3, 12)) != before


@pytest.mark.parametrize("content", [None, "", "{", "[]", '"text"'])
def test_a_stamp_that_says_nothing_is_empty(run, tmp_path, content):
    path = tmp_path / "stamp.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    assert run.read_stamp(path) == {}


def test_stamp_survives_being_written(run, inputs, venv, tmp_path):
    wanted = run.wanted_stamp(venv, inputs, (3, 12))
    path = tmp_path / "stamp.json"
    path.write_text(json.dumps({**wanted, "installer": "pip"}), encoding="utf-8")
    assert run.is_current(run.read_stamp(path), wanted, venv)


def test_no_stamp_is_neither_current_nor_reusable(run, inputs, venv):
    wanted = run.wanted_stamp(venv, inputs, (3, 12))
    assert not run.is_current({}, wanted, venv)
    assert not run.is_reusable({}, wanted, venv, "pip")


def test_an_environment_whose_python_is_gone_is_not_current(run, inputs, venv):
    wanted = run.wanted_stamp(venv, inputs, (3, 12))
    (venv / "bin" / "python").unlink()
    (venv / "bin" / "python").symlink_to(venv / "removed")
    assert not run.is_current(wanted, wanted, venv)


@pytest.mark.parametrize(
    ("difference", "reusable"),
    [
        ({"inputs": "older"}, True),  # install what changed
        ({"venv": "/elsewhere/.venv"}, False),  # moved or copied: its scripts name another folder
        ({"python": "3.11"}, False),
        ({"inputs": "older", "installer": "uv"}, False),  # uv leaves no pip behind to go on with
    ],
)
def test_what_an_outdated_environment_is_good_for(run, inputs, venv, difference, reusable):
    wanted = run.wanted_stamp(venv, inputs, (3, 12))
    stamp = {**wanted, "installer": "pip", **difference}
    assert not run.is_current(stamp, wanted, venv)
    assert run.is_reusable(stamp, wanted, venv, "pip") is reusable


def test_uv_coming_or_going_does_not_outdate_an_environment(run, inputs, venv):
    wanted = run.wanted_stamp(venv, inputs, (3, 12))
    assert run.is_current({**wanted, "installer": "uv"}, wanted, venv)


def test_commands_find_the_environment_first(run, tmp_path):
    before = {"PATH": "/usr/bin", "PYTHONHOME": "/elsewhere", "LANG": "C"}
    after = run.command_environment(before, tmp_path)
    assert after == {"PATH": f"{tmp_path / 'bin'}:/usr/bin", "VIRTUAL_ENV": str(tmp_path), "LANG": "C"}
    assert before["PATH"] == "/usr/bin"


def test_find_command_takes_the_environments_own(run, tmp_path):
    tool = tmp_path / "bin" / "ls"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n", encoding="utf-8")
    tool.chmod(0o755)
    assert run.find_command("ls", run.command_environment(os.environ, tmp_path)) == str(tool)


def test_unknown_command_has_the_shells_exit_status(run, tmp_path):
    with pytest.raises(run.CannotRunError, match="no-such-tool: no such command") as caught:
        run.find_command("no-such-tool", {"PATH": str(tmp_path)})
    assert caught.value.status == 127


def test_old_python_is_refused_with_a_way_out(run):
    with pytest.raises(run.CannotRunError, match=r"3\.11 or newer is needed, this is 3\.10") as caught:
        run.check_python((3, 10, 12))
    assert caught.value.status == 2
    assert "hint: call it with another one: python3.11 run" in str(caught.value)
    run.check_python((3, 11, 0))
    run.check_python((3, 13, 0))


def test_missing_ensurepip_names_the_package_to_install(run, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ensurepip" else name)
    with pytest.raises(run.CannotRunError, match="has no ensurepip module") as caught:
        run.check_venv_module()
    assert caught.value.status == 2
    assert "apt-get install python3-venv" in str(caught.value)


@pytest.mark.parametrize("uv", [None, "/opt/uv"])
def test_install_is_under_the_constraints_and_makes_the_environment_only_when_fresh(run, tmp_path, uv):
    make, install = run.install_commands(tmp_path, uv, fresh=True)
    assert make[0] == (uv or sys.executable)
    assert install[-2:] == ["--constraint", str(ROOT / "constraints.txt")]
    assert f"{ROOT}[dev]" in install
    assert run.install_commands(tmp_path, uv, fresh=False) == [install]


def test_a_folder_made_by_someone_else_is_not_removed(run, tmp_path, monkeypatch):
    venv = tmp_path / ".venv"
    venv.mkdir()
    (venv / "precious").touch()
    monkeypatch.setattr(run, "VENV", venv)
    monkeypatch.setattr(run, "LOG", venv / "run.log")
    with pytest.raises(run.CannotRunError, match="did not make it"):
        run.empty_venv()
    assert (venv / "precious").exists()


def test_its_own_unfinished_folder_is_emptied(run, tmp_path, monkeypatch):
    venv = tmp_path / ".venv"
    venv.mkdir()
    (venv / "half").touch()
    (venv / "run.log").touch()
    monkeypatch.setattr(run, "VENV", venv)
    monkeypatch.setattr(run, "LOG", venv / "run.log")
    run.empty_venv()
    assert [path.name for path in venv.iterdir()] == ["run.log"]


def test_a_second_run_waits_for_the_lock(run, tmp_path, capsys):
    lock = tmp_path / "lock"
    hold = "import fcntl, sys; f = open(sys.argv[1], 'a'); fcntl.flock(f, 2); "
    hold += "print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", hold, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin
        assert holder.stdout
        holder.stdout.readline()  # it has the lock
        release = threading.Timer(0.3, holder.stdin.close)  # its input ends, so it does
        release.start()
        with run.alone(lock):
            assert holder.wait(timeout=20) == 0
        release.join()
    assert "waiting for another ./run" in capsys.readouterr().err


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Call the script itself."""
    command = [sys.executable, str(ROOT / "run"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_without_a_command_it_says_how_it_is_called():
    done = call()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: ./run COMMAND")


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_is_output(option):
    done = call(option)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: ./run COMMAND")


def current_environment(run: ModuleType) -> bool:
    """Tell whether ./run would install nothing."""
    wanted = run.wanted_stamp(run.VENV, run.INPUTS, sys.version_info[:2])
    return bool(run.is_current(run.read_stamp(run.STAMP), wanted, run.VENV))


def test_calls_that_need_the_environment(run):
    if not current_environment(run):
        pytest.skip("these tests do not run under ./run, so calling it would install")
    done = call("no-such-tool")
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr == "run: no-such-tool: no such command, neither in .venv/bin nor on PATH\n"
    done = call("python", "-c", "import sys; print(sys.prefix); sys.exit(7)")
    assert (done.returncode, done.stdout, done.stderr) == (7, f"{ROOT / '.venv'}\n", "")
