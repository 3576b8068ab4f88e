"""Members of the mixture, one file each. `ompb.core.mixture` lists them."""
