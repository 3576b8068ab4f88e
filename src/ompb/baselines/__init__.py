"""Published methods of online adaptation, one file each, written from their formulas; needs PyTorch.

Each file names its source, keeps the published settings in a dataclass, and enters its methods by ``@method``. The
benchmark finds them by the entry points of this package.
"""
