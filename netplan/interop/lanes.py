"""InfiniBand lanes: rates by width and speed word, both ways."""

from __future__ import annotations

#: Data rate of one lane [Gb/s]: QDR and below are 8b/10b coded, FDR is 14.0625 Gb/s with 64b/66b
#: (InfiniBand Architecture Specification, volume 2).
LANE_GBPS = {
    "SDR": 2.0,
    "DDR": 4.0,
    "QDR": 8.0,
    "FDR10": 10.0,
    "FDR": 14.0625 * 64 / 66,
    "EDR": 25.0,
    "HDR": 50.0,
    "NDR": 100.0,
    "XDR": 200.0,
}

#: Lanes of a port, the usual one first.
WIDTHS = (4, 2, 1, 8, 12)


def lane_rate(width: int, speed: str) -> float:
    """Return the rate of a port [bytes/s].

    >>> lane_rate(4, "NDR")
    50000000000.0
    """
    return width * LANE_GBPS[speed] * 1e9 / 8


def speed_word(rate: float) -> str:
    """Return width and speed of a rate [bytes/s], such as ``4xNDR``; of others the nearest below.

    >>> speed_word(50e9), speed_word(25e9), speed_word(6.25e9)
    ('4xNDR', '4xHDR', '2xEDR')
    """
    pairs = [
        (lane_rate(width, speed), -i, f"{width}x{speed}")
        for speed in LANE_GBPS
        for i, width in enumerate(WIDTHS)
    ]
    below = [pair for pair in pairs if pair[0] <= rate * (1 + 1e-9)]
    return max(below)[2] if below else min(pairs)[2]


def ibsim_word(rate: float) -> str | None:
    """Return a rate [bytes/s] in words that ibsim 0.10 knows, which end at HDR; None when it has none.

    >>> ibsim_word(50e9), ibsim_word(12.5e9), ibsim_word(100e9) is None
    ('8xHDR', '4xEDR', True)
    """
    known = [speed for speed in LANE_GBPS if speed not in ("NDR", "XDR", "FDR10")]
    pairs = [(width, speed) for width in WIDTHS for speed in known]
    exact = (
        f"{width}x{speed}" for width, speed in pairs if abs(lane_rate(width, speed) - rate) < 1e-6 * rate
    )
    return next(exact, None)
