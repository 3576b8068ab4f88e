"""Gamma, what the certificate pays for having seen only m windows: one kind a file.

A kind joins by being imported here.
"""

from ompb.core.certificate.kinds.contract import Kind, Spread
from ompb.core.certificate.kinds.freedman import Freedman
from ompb.core.certificate.kinds.iid import Iid
from ompb.core.certificate.kinds.subgamma import SubGamma

__all__ = ["Freedman", "Iid", "Kind", "Spread", "SubGamma"]
