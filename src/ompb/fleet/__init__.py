"""Many series that share a clock: followed live (`ompb.Fleet`), or over all their rows at once (`ompb.backtest`)."""
