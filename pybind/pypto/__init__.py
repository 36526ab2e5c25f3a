# SPDX-License-Identifier: Apache-2.0
"""PTO kernels in Python."""
from pypto.language import *  # noqa: F401,F403
