"""What a sweep may vary: every setting of a scenario, by a dotted path.

========================  ===========================================================================
``fabric``, ``traffic``   another shipped name or file
``fabric.KEY``            a field of the fabric's spec, as with ``--set KEY=VALUE``
``traffic.KEY``           a field of the workload's spec
``routing``, ``cc``       a scheme, a congestion control
``cc.PROTOCOL.PARAMETER`` a parameter of a protocol, with its unit; other protocols do not read it
``switch``                a profile of switches
``switch.FIELD``          one of its figures (`SWITCH_FIELDS`); ``ecn_factor`` scales both ECN thresholds
``fail``                  what fails: a text or a list of texts
``on_dead``               what hosts do that lost NICs
``mtu``, ``seed``         as the options of ``netplan simulate``
``polarized``, ``flowlets``, ``reevaluations``   options of routing schemes
``exact``, ``step``       options of the engine
========================  ===========================================================================
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from netplan.congestion.cc.registry import PROTOCOLS
from netplan.congestion.switch import PRESETS, find_profile
from netplan.errors import ModelRangeError, NetplanError, SpecError, UnitError, did_you_mean
from netplan.routing import SCHEMES
from netplan.simulate.scenario import MAX_MIN
from netplan.simulate.switches import AUTO, DEFAULT
from netplan.units import parse_rate, parse_size, parse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from netplan.congestion.switch import SwitchProfile
    from netplan.spec.sweep import Scalar

__all__ = ["SWITCH_FIELDS", "Case", "read_case"]


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        message = f"is not a number: {value!r}"
        raise UnitError(message)
    return float(value)


#: Figures of a switch profile that may vary: part of the profile, field, and how its value is read.
SWITCH_FIELDS: dict[str, tuple[str, str, Callable[[object], float]]] = {
    "kmin": ("ecn", "kmin_bytes", parse_size),
    "kmax": ("ecn", "kmax_bytes", parse_size),
    "pmax": ("ecn", "pmax", _number),
    "alpha": ("pfc", "alpha", _number),
    "xoff": ("pfc", "xoff_bytes", parse_size),
    "xon_offset": ("pfc", "xon_offset_bytes", parse_size),
    "headroom": ("pfc", "headroom_bytes", parse_size),
    "buffer": ("buffer", "total_bytes", parse_size),
}

#: Scales Kmin and Kmax of the profile.
_ECN_FACTOR = "ecn_factor"

#: Settings without a dot, and what their values are.
_PLAIN: dict[str, tuple[type, ...]] = {
    "fabric": (str,),
    "traffic": (str,),
    "routing": (str,),
    "cc": (str,),
    "switch": (str,),
    "on_dead": (str,),
    "fail": (str, tuple),
    "mtu": (int,),
    "seed": (int,),
    "polarized": (bool,),
    "flowlets": (int,),
    "reevaluations": (int,),
    "exact": (bool,),
    "step": (str,),
}

_TYPE_WORDS = {str: "a text", tuple: "a list of texts", int: "a whole number", bool: "true or false"}

_ROUTING_OPTIONS = ("polarized", "flowlets", "reevaluations")

_PARSERS: dict[str, Callable[[object], float]] = {
    "s": parse_time,
    "bytes": parse_size,
    "bytes/s": parse_rate,
}

_HEADS = ("fabric.", "traffic.", "cc.PROTOCOL.", "switch.")


@dataclass(frozen=True)
class Case:
    """One scenario of a sweep as plain data: all that decides its result."""

    fabric: str
    traffic: str
    fabric_sets: Mapping[str, str] = field(default_factory=dict)
    traffic_sets: Mapping[str, str] = field(default_factory=dict)
    failures: tuple[str, ...] = ()
    routing: str = "ecmp"
    cc: str = MAX_MIN
    cc_params: Mapping[str, float] = field(default_factory=dict)
    switch: str = AUTO
    switch_fields: Mapping[str, float] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    """``on_dead``, ``mtu``, ``exact``, ``step`` and routing options."""
    seed: int = 0
    unread: tuple[str, ...] = ()
    """Settings that this case does not read: parameters of other protocols, switches under max-min."""

    @property
    def fabric_key(self) -> str:
        """Tell fabrics apart, damaged ones too."""
        seed = self.seed if any(item.startswith("random:") for item in self.failures) else None
        return _digest([self.fabric, dict(self.fabric_sets), list(self.failures), seed])

    @property
    def key(self) -> str:
        """Tell results apart: equal keys have equal results, whatever is not read."""
        plain = dataclasses.asdict(self)
        del plain["unread"]
        return _digest(plain)

    def switches(self) -> SwitchProfile | str:
        """Return the profile with its figures replaced.

        Raises
        ------
        ModelRangeError
            Figures that do not go together.
        """
        if not self.switch_fields:
            return self.switch
        if self.switch == AUTO and "buffer" in self.switch_fields:
            message = "switch.buffer needs a named profile: auto sizes its buffers by the fabric"
            raise ModelRangeError(message, hint=f"add `switch:` with one of {', '.join(PRESETS)}")
        profile = DEFAULT if self.switch == AUTO else find_profile(self.switch)
        parts: dict[str, dict[str, float]] = {"ecn": {}, "pfc": {}, "buffer": {}}
        for name, value in self.switch_fields.items():
            if name != _ECN_FACTOR:
                part, each, _ = SWITCH_FIELDS[name]
                parts[part][each] = value
        made = {
            part: dataclasses.replace(getattr(profile, part), **values)
            for part, values in parts.items()
            if values
        }
        ecn = made.get("ecn", profile.ecn)
        factor = self.switch_fields.get(_ECN_FACTOR)
        if factor is not None:
            made["ecn"] = ecn.scaled(factor)
        return dataclasses.replace(profile, **made)


def read_case(settings: Mapping[str, Scalar]) -> Case:
    """Return the scenario that settings describe.

    Parameters
    ----------
    settings
        Path to value; ``fabric`` and ``traffic`` must be there.

    Raises
    ------
    SpecError
        A path that is none, or a value that it cannot take.
    """
    plain: dict[str, Any] = {}
    fabric_sets: dict[str, str] = {}
    traffic_sets: dict[str, str] = {}
    params: dict[str, dict[str, float]] = {}
    fields: dict[str, float] = {}
    for path, value in settings.items():
        head, _, rest = path.partition(".")
        if path in _PLAIN:
            plain[path] = _plain(path, value)
        elif head == "fabric" and rest:
            fabric_sets[rest] = _text(value)
        elif head == "traffic" and rest:
            traffic_sets[rest] = _text(value)
        elif head == "switch" and rest:
            fields[rest] = _switch_field(path, rest, value)
        elif head == "cc" and rest:
            protocol, name, number = _parameter(path, rest, value)
            params.setdefault(protocol, {})[name] = number
        else:
            raise _unknown(path)
    return _case(plain, fabric_sets, traffic_sets, params, fields)


def _case(
    plain: dict[str, Any],
    fabric_sets: dict[str, str],
    traffic_sets: dict[str, str],
    params: dict[str, dict[str, float]],
    fields: dict[str, float],
) -> Case:
    """Put settings that have been read together, leaving out what this congestion control does not read."""
    cc, routing = plain.get("cc", MAX_MIN), plain.get("routing", "ecmp")
    _find("routing", routing, SCHEMES.find)
    unread = [f"cc.{name}.{each}" for name, own in params.items() if name != cc for each in own]
    options = {name: plain[name] for name in ("on_dead", "mtu", *_ROUTING_OPTIONS) if name in plain}
    switch = AUTO
    if cc == MAX_MIN:
        unread += [f"switch.{name}" for name in fields]
        unread += [name for name in ("switch", "exact", "step") if name in plain]
        fields = {}
    else:
        _find("cc", cc, PROTOCOLS.find)
        switch = plain.get("switch", AUTO)
        if switch != AUTO:
            _find("switch", switch, find_profile)
        options |= {name: plain[name] for name in ("exact",) if name in plain}
        if "step" in plain:
            options["step"] = _quantity("step", parse_time, plain["step"])
    failures = plain.get("fail", ())
    return Case(
        fabric=plain["fabric"],
        traffic=plain["traffic"],
        fabric_sets=fabric_sets,
        traffic_sets=traffic_sets,
        failures=(failures,) if isinstance(failures, str) else tuple(failures),
        routing=routing,
        cc=cc,
        cc_params=params.get(cc, {}),
        switch=switch,
        switch_fields=fields,
        options=options,
        seed=plain.get("seed", 0),
        unread=tuple(unread),
    )


def _plain(path: str, value: Scalar) -> Scalar:
    """Check the type of a setting without a dot."""
    accepted = _PLAIN[path]
    if type(value) not in accepted:
        words = " or ".join(_TYPE_WORDS[each] for each in accepted)
        message = f"{path} = {_shown(value)}: must be {words}"
        raise SpecError(message)
    return value


def _parameter(path: str, rest: str, value: Scalar) -> tuple[str, str, float]:
    """Read ``cc.PROTOCOL.PARAMETER``."""
    protocol, _, name = rest.partition(".")
    found = _find(path, protocol, PROTOCOLS.find)
    known = {each.name: each for each in found.parameters}
    if name not in known:
        near = did_you_mean(name, known)
        listing = ", ".join(known) or "none"
        raise SpecError(
            f"{path}: {protocol} has no parameter {name!r}; it reads {listing}",
            hint=f"did you mean `cc.{protocol}.{near}`?" if near else None,
        )
    number = _quantity(path, _PARSERS.get(known[name].unit, _number), value)
    try:
        found.values({name: number})
    except ModelRangeError as error:
        raise SpecError(f"{path}: {error.message}", hint=error.hint) from None
    return protocol, name, number


def _switch_field(path: str, name: str, value: Scalar) -> float:
    """Read ``switch.FIELD``."""
    if name == _ECN_FACTOR:
        return _quantity(path, _number, value)
    if name not in SWITCH_FIELDS:
        near = did_you_mean(name, (*SWITCH_FIELDS, _ECN_FACTOR))
        raise SpecError(
            f"{path}: unknown setting; accepted after `switch.`: {', '.join(SWITCH_FIELDS)}, {_ECN_FACTOR}",
            hint=f"did you mean `switch.{near}`?" if near else None,
        )
    return _quantity(path, SWITCH_FIELDS[name][2], value)


def _quantity(path: str, parse: Callable[[object], float], value: Scalar) -> float:
    """Read a number, with its unit where it has one."""
    try:
        return float(parse(value))
    except UnitError as error:
        raise SpecError(f"{path} = {error.message}", hint=error.hint) from None


def _find(path: str, name: str, find: Callable[[str], Any]) -> Any:  # noqa: ANN401 -- whatever the registry has
    """Look a name up; the message says which setting asked."""
    try:
        return find(name)
    except NetplanError as error:
        raise SpecError(f"{path}: {error.message}", hint=error.hint) from None


def _unknown(path: str) -> SpecError:
    near = did_you_mean(path, (*_PLAIN, *(f"cc.{name}" for name in PROTOCOLS.names())))
    return SpecError(
        f"{path}: unknown setting; accepted: {', '.join(_PLAIN)}, and what begins with {', '.join(_HEADS)}",
        hint=f"did you mean `{near}`?" if near else None,
    )


def _text(value: Scalar) -> str:
    """Write a value as the YAML text that ``--set`` would have."""
    return value if isinstance(value, str) else json.dumps(value)


def _shown(value: Scalar) -> str:
    return repr(list(value)) if isinstance(value, tuple) else repr(value)


def _digest(data: object) -> str:
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
