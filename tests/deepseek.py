"""Unit prices that the cost table of DeepSeek-V3 (ISCA 2025) implies, and a catalogue of them.

DeepSeek-V3 (ISCA 2025), Table 3: FT2 2,048 endpoints, 96 switches, 2,048 links between switches, 9 M$ (4.39
k$ an endpoint); FT3 65,536, 5,120, 131,072, 491 M$ (7.5 k$). The text gives no unit prices. Derived: one
price s for a switch and one price l for a link between switches (it counts no endpoint links) solve 96 s +
2,048 l = 9 M$ and 5,120 s + 131,072 l = 491 M$: s = 83.0 k$, l = 504 $. With them the other rows follow:
Slim Fly 146.7 (146) M$, Dragonfly 1,551 (1,522) M$, MPFT 72.0 (72) M$.
"""

from pathlib import Path

import numpy as np

from netplan.catalog.parts import Catalogue, load_catalogue

_PARTS = """\
switches:
  - name: qm9700
    protocol: infiniband
    ports: {{value: [{{speed: 400G, count: 64}}], source: Table 3, date: 2025-06, confidence: published}}
    cages: {{value: {{type: osfp-ihs, count: {cages}}}, source: class, date: 2025-06, confidence: published}}
    price: {{low: {switch} USD, high: {switch} USD, source: derived, date: 2025-06, confidence: estimate}}
nics:
  - name: connectx-7
    ports: {{value: [{{speed: 400G, count: 1}}], source: class, date: 2025-06, confidence: published}}
    cage: {{value: osfp-rhs, source: class, date: 2025-06, confidence: published}}
    price: {{low: 0 USD, high: 0 USD, source: not counted, date: 2025-06, confidence: estimate}}
cables:
  - {{name: endpoint-link, medium: copper, speed: 400G, fits: [osfp-ihs], far_fits: [osfp-rhs],
     price: {{low: 0 USD, high: 0 USD, source: not counted, date: 2025-06, confidence: estimate}},
     reach: {{value: 1 km, source: any, date: 2025-06, confidence: estimate}}}}
  - {{name: switch-link, medium: active-optical, speed: 400G, fits: [osfp-ihs], far_fits: [osfp-ihs],
     price: {{low: {link} USD, high: {link} USD, source: derived, date: 2025-06, confidence: estimate}},
     reach: {{value: 1 km, source: any, date: 2025-06, confidence: estimate}}}}
"""


def deepseek_prices() -> tuple[float, float]:
    switch, link = np.linalg.solve([[96, 2048], [5120, 131072]], [9e6, 491e6])
    return float(switch), float(link)


def deepseek_parts(folder: Path, *, cages: int) -> Catalogue:
    """Return the catalogue with a switch of so many cages at these prices."""
    switch, link = deepseek_prices()
    path = folder / "parts.yaml"
    path.write_text(_PARTS.format(switch=f"{switch:.2f}", link=f"{link:.2f}", cages=cages), encoding="utf-8")
    return load_catalogue(str(path))
