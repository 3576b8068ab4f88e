"""Every analysis of the paper, one file each: the cells it needs, and the tables and figures it makes of them."""
