"""The online stage for any number of series that share a clock; a stream is one of them."""
