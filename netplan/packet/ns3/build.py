"""The ns3 wheel with netplan's model in it: found, compiled once, loaded.

The wheel has no RoCE, so the model (``model.cc``) is compiled against its headers and libraries. Two ways:

* *bindings* (cppyy, the wheel's Python bindings): its interpreter compiles the model in memory;
* *compiler*: ``c++`` makes a library, kept in the cache folder under a hash of the model, wheel and compiler.

``from ns import ns`` is not used: it reads all headers of all modules before any library (20 s, 640 MB, and
an error message). Libraries first, then what the model includes, with the definitions of the wheel's build.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from netplan.errors import BackendError

__all__ = ["Wheel", "find_wheel", "how_to_load", "load"]

How = Literal["bindings", "compiler"]

#: Definitions that the wheel was built with; without them classes have other sizes.
_DEFINITIONS = ("NS3_LOG_ENABLE", "NS3_ASSERT_ENABLE")

_MODULES = ("core", "network")

_INSTALL = "pip install 'netplan-rdma[ns3]' (Linux on x86-64, Python 3.11 to 3.13; it needs a C++ compiler)"

#: Longest compilation [s].
_PATIENCE_S = 300

MODEL = Path(__file__).with_name("model.cc")


@dataclass(frozen=True)
class Wheel:
    """An installed ns3."""

    prefix: Path
    version: str
    """As in the names of its libraries: 3.44."""

    def library(self, module: str) -> Path:
        """Return the library of a module."""
        return self.prefix / "lib64" / f"libns{self.version}-{module}.so"


def find_wheel() -> Wheel:
    """Find the ns3 wheel without importing it.

    Raises
    ------
    BackendError
        It is not installed, or is not what it should be.
    """
    spec = importlib.util.find_spec("ns3")
    places = list(spec.submodule_search_locations or ()) if spec else []
    if not places:
        message = "--packet ns3 needs the wheel ns3, which is not installed"
        raise BackendError(message, hint=_INSTALL)
    prefix = Path(places[0])
    for library in sorted((prefix / "lib64").glob("libns3*-core.so")):
        match = re.fullmatch(r"libns(3[\d.]*)-core\.so", library.name)
        if match:
            return Wheel(prefix, match[1])
    raise BackendError(f"the ns3 at {prefix} has no libns3*-core.so: it is not the wheel", hint=_INSTALL)


def how_to_load() -> How:
    """Return the way that there is to load the model: the bindings, else a compiler.

    Raises
    ------
    BackendError
        Neither.
    """
    wanted = os.environ.get("NETPLAN_NS3", "")
    if wanted not in {"", "bindings", "compiler"}:
        raise BackendError(f"NETPLAN_NS3={wanted!r} is neither bindings nor compiler")
    has_bindings = importlib.util.find_spec("cppyy") is not None
    has_compiler = _compiler() is not None
    if wanted != "compiler" and has_bindings and has_compiler:  # cppyy asks the compiler for its headers
        return "bindings"
    if wanted != "bindings" and has_compiler:
        return "compiler"
    missing = "cppyy" if has_compiler else "a C++ compiler (c++ or g++)"
    raise BackendError(f"--packet ns3 needs {missing}", hint=_INSTALL)


def load(wheel: Wheel, how: How) -> Callable[[int, int], int]:
    """Load the model; return its entry: addresses of input and output in, 0 out.

    Raises
    ------
    BackendError
        It does not compile.
    """
    if how == "bindings":
        return _by_bindings(wheel)
    for module in _MODULES:
        ctypes.CDLL(str(wheel.library(module)), mode=ctypes.RTLD_GLOBAL)
    entry = ctypes.CDLL(str(compiled(wheel))).netplan_run
    entry.argtypes = [ctypes.c_ulonglong, ctypes.c_ulonglong]
    entry.restype = ctypes.c_int
    return entry


def _by_bindings(wheel: Wheel) -> Callable[[int, int], int]:
    """Let cppyy compile the model."""
    import cppyy

    cppyy.add_library_path(str(wheel.prefix / "lib64"))
    cppyy.add_include_path(str(wheel.prefix / "include"))
    for module in _MODULES:
        cppyy.load_library(wheel.library(module).name)
    definitions = "".join(f"#define {name} 1\n" for name in _DEFINITIONS)
    try:
        cppyy.cppdef(f'{definitions}#include "{MODEL}"')
    except SyntaxError as error:
        raise BackendError(f"cppyy cannot compile the ns-3 model: {str(error)[:500]}") from None
    entry: Callable[[int, int], int] = cppyy.gbl.netplan_run
    return entry


def compiled(wheel: Wheel) -> Path:
    """Return the model as a library, compiled when it is not in the cache.

    Raises
    ------
    BackendError
        There is no compiler, or it fails.
    """
    compiler = _compiler()
    if compiler is None:
        message = "no C++ compiler (c++ or g++) for the ns-3 model"
        raise BackendError(message, hint=_INSTALL)
    flags = ["-O3", "-std=c++20", "-fPIC", "-shared", *(f"-D{name}" for name in _DEFINITIONS)]
    version = subprocess.run([compiler, "--version"], check=False, capture_output=True).stdout
    whole = hashlib.sha256(MODEL.read_bytes() + version)
    for part in (str(wheel.prefix), wheel.version, *flags):
        whole.update(part.encode() + b"\0")
    folder = cache_folder()
    target = folder / f"ns3-{wheel.version}-{whole.hexdigest()[:20]}.so"
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(suffix=".so", dir=folder)
    os.close(handle)
    command = [compiler, *flags, f"-I{wheel.prefix / 'include'}", str(MODEL), "-o", temporary]
    command += [f"-L{wheel.prefix / 'lib64'}", *(f"-l:{wheel.library(module).name}" for module in _MODULES)]
    command.append(f"-Wl,-rpath,{wheel.prefix / 'lib64'}")
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_PATIENCE_S)
        if done.returncode:
            last = "\n".join(done.stderr.strip().splitlines()[-5:])
            raise BackendError(f"{compiler} cannot compile the ns-3 model:\n{last}")
        Path(temporary).replace(target)
    except subprocess.TimeoutExpired:
        raise BackendError(f"{compiler} took longer than {_PATIENCE_S} s for the ns-3 model") from None
    finally:
        Path(temporary).unlink(missing_ok=True)
    return target


def cache_folder() -> Path:
    """Return where compiled models are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "netplan"


def _compiler() -> str | None:
    return next((found for found in map(shutil.which, ("c++", "g++")) if found), None)
