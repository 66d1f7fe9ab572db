"""Short names for the arrays that compiled functions take.

Compiled functions are called with arrays of exactly these types; their shapes stand in the
docstring of the public function that calls them.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Bools: TypeAlias = NDArray[np.bool_]
Bytes: TypeAlias = NDArray[np.int8]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Ints32: TypeAlias = NDArray[np.int32]
Ints16: TypeAlias = NDArray[np.int16]
Words: TypeAlias = NDArray[np.uint64]
