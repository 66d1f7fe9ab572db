"""YAML text in, validated frozen values out; every fault with its place.

`parse_yaml` reads the text and keeps the line of each value; `validate` lays a `SpecModel` over it and turns
all that does not fit into one `SpecError`. The models: `netplan.spec.fabric` and `netplan.spec.traffic`.
Nothing here imports numpy.
"""
