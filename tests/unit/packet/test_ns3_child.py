"""The child process of ns-3: whatever happens to it becomes a `BackendError`; nothing is left behind."""

from __future__ import annotations

import os
import re
import signal
import sys
import textwrap
import time
from dataclasses import replace

import pytest

from netplan import api
from netplan.errors import BackendError, ModelRangeError
from netplan.packet import BACKENDS, Limits, PacketBackend, PacketEngine
from netplan.packet.ns3 import backend, build


@pytest.fixture
def child(tmp_path, monkeypatch):
    """Let a script stand in for the child."""
    monkeypatch.setattr(backend, "_check", lambda: None)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def use(text: str) -> None:
        script = tmp_path / "child.py"
        script.write_text(textwrap.dedent(text))
        monkeypatch.setattr(backend, "_CHILD", (str(script),))

    return use


def run(limits: Limits | None = None, report=None):
    engine = PacketEngine(_unchecked(), limits, report)
    fabric, traffic = api.load_fabric("lab-2-leaf"), api.load_traffic("incast-8")
    return api.simulate(fabric, traffic, cc="dcqcn", engine=engine, packet="ns3")


def _unchecked() -> PacketBackend:
    return replace(BACKENDS.find("ns3"), check=lambda: None)


def folders(tmp_path):
    return list(tmp_path.glob("netplan-ns3-*"))


def test_a_crash_is_told_with_its_last_lines(child, tmp_path):
    child("""
        import sys
        print("NS_FATAL, terminating", file=sys.stderr)
        print("file=model.cc, line=7", file=sys.stderr)
        sys.exit(133)
    """)
    with pytest.raises(BackendError) as caught:
        run()
    assert "ns-3 ended with status 133:" in caught.value.message
    assert "line=7" in caught.value.message
    (kept,) = folders(tmp_path)
    assert str(kept) in (caught.value.hint or "")
    assert (kept / "input.npz").exists()


def test_a_killed_child_is_said(child):
    child("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(BackendError, match="ns-3 ended by SIGKILL") as caught:
        run()
    assert "out of memory?" in (caught.value.hint or "")


def test_a_child_that_asks_for_too_much_memory_is_said(child):
    child("""
        import resource, sys
        limit = int(sys.argv[4])
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        bytearray(8 * limit)
    """)
    with pytest.raises(BackendError, match="out of the 1 GiB that it may take"):
        run(Limits(memory_bytes=2**30))


def test_a_child_that_takes_too_long_is_ended(child):
    child("import time; time.sleep(60)")
    begun = time.monotonic()
    with pytest.raises(BackendError, match="ns-3 was ended after 500 ms") as caught:
        run(Limits(timeout_s=0.5))
    assert time.monotonic() - begun < 20
    assert "--packet-timeout" in (caught.value.hint or "")


def test_an_interrupted_run_ends_its_child_and_leaves_nothing(child, tmp_path):
    child("""
        import os, sys, time
        open(os.path.join(os.path.dirname(sys.argv[1]), "..", "pid"), "w").write(str(os.getpid()))
        os.write(int(sys.argv[3]), b"1 2 3\\n")
        time.sleep(60)
    """)

    def interrupt(part: float) -> None:
        assert part == 0.5
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(report=interrupt)
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIG_DFL)
    assert not folders(tmp_path)


def test_a_full_disk_is_said(child, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numpy.savez", full)
    with pytest.raises(BackendError, match="cannot be written: No space left on device"):
        run()


def test_credits_are_refused(child):
    child("")
    fabric, traffic = api.load_fabric("lab-2-leaf"), api.load_traffic("incast-8")
    engine = PacketEngine(_unchecked())
    with pytest.raises(ModelRangeError, match="ns3 has no ib-credits"):
        api.simulate(fabric, traffic, routing="ib-static", cc="ib-credits", engine=engine, packet="ns3")


def test_a_missing_wheel_is_said_with_the_line_that_installs_it(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(BackendError, match="needs the wheel ns3, which is not installed") as caught:
        PacketEngine("ns3")
    assert "pip install 'netplan-rdma[ns3]'" in (caught.value.hint or "")


def test_a_folder_named_ns3_is_not_the_wheel(monkeypatch, tmp_path):
    (tmp_path / "ns3" / "lib64").mkdir(parents=True)
    (tmp_path / "ns3" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "ns3", raising=False)
    with pytest.raises(BackendError, match=r"has no libns3\*-core\.so: it is not the wheel"):
        build.find_wheel()


@pytest.mark.parametrize(
    ("cppyy", "compiler", "wanted", "how"),
    [
        (True, True, "", "bindings"),
        (True, True, "compiler", "compiler"),
        (False, True, "", "compiler"),
        (False, False, "", "needs a C++ compiler"),
        (False, True, "bindings", "needs cppyy"),
        (True, True, "magic", "is neither bindings nor compiler"),
    ],
)
def test_the_model_is_loaded_by_the_bindings_else_by_a_compiler(monkeypatch, cppyy, compiler, wanted, how):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object() if cppyy else None)
    monkeypatch.setattr(build, "_compiler", lambda: "c++" if compiler else None)
    monkeypatch.setenv("NETPLAN_NS3", wanted)
    if how in {"bindings", "compiler"}:
        assert build.how_to_load() == how
    else:
        with pytest.raises(BackendError, match=re.escape(how)):
            build.how_to_load()


def test_a_model_that_does_not_compile_is_said_and_nothing_is_kept(monkeypatch, tmp_path):
    (tmp_path / "lib64").mkdir()
    (tmp_path / "bad.cc").write_text("this is no C++\n")
    monkeypatch.setattr(build, "MODEL", tmp_path / "bad.cc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if build._compiler() is None:
        pytest.skip("no C++ compiler")
    with pytest.raises(BackendError, match="cannot compile the ns-3 model"):
        build.compiled(build.Wheel(tmp_path, "3.44"))
    assert not list((tmp_path / "cache" / "netplan").iterdir())
