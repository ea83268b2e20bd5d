"""Types of the arrays in annotations, by their numbers."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int32]
IndexArray: TypeAlias = NDArray[np.int64]
UIntArray: TypeAlias = NDArray[np.uint32]
