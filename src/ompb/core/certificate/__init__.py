"""The certificate: its windows, its terms, its kinds of complexity, and what outcomes prove afterwards."""
