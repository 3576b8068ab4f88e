"""Light forecasters that need nothing but numpy.

A forecaster is a callable from windows (n, context, C) to forecasts (n, horizon, C), in the user's units, or an
`ompb.seam.query.Forecaster`, which is told origins and times, too.
"""

from ompb.forecasters.profile import SeasonalProfile
from ompb.forecasters.recorded import Recorded
from ompb.forecasters.ridge import Ridge

__all__ = ["Recorded", "Ridge", "SeasonalProfile"]
