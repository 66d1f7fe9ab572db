"""Planning: what a fabric takes to build and what its failures cost. Everything here only reads."""
