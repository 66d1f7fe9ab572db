"""What is shipped with netplan: fabrics in ``topologies/``, workloads in ``traffic/``.

They are YAML files that users copy, edit and compare; each begins with a comment that says what
it is, its sizes and where its numbers come from.
"""
