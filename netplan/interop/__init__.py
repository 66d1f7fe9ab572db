"""Files of other programs: one format a file, read, written, or both.

A reader turns text into a `ReadGraph` (nodes, cables, and what it had to assume); `build_read_graph`
makes a fabric of it through the builder of custom fabrics, so that everything works on it. A writer turns a
fabric into files, by their names in a folder. Formats register themselves (`netplan.interop.registry`) with
the real program that checks them and with what they cannot say.
"""
