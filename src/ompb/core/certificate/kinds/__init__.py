"""Gamma, what the certificate pays for having seen only m windows: one kind a file.

A kind joins by being imported here.
"""

from ompb.core.certificate.kinds.betting import Betting
from ompb.core.certificate.kinds.contract import Kind
from ompb.core.certificate.kinds.freedman import Freedman
from ompb.core.certificate.kinds.iid import Iid
from ompb.core.certificate.kinds.subgamma import SubGamma

__all__ = ["Betting", "Freedman", "Iid", "Kind", "SubGamma"]
