# SPDX-License-Identifier: Apache-2.0
"""The kernels of examples/ with inputs, launch geometry and independently computed results.

Use: put tests/ on sys.path, then `from corpus import manifest`; see manifest.py.
"""
