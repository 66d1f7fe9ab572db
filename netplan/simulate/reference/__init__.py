"""Runs of packet-level simulators, and how well a model of netplan foretells them.

`runs` reads stored runs, `max_min` gives every flow its max-min rate on the paths that the packets
took, `comparison` sets a model's times, queues and pauses against the recorded ones.
"""
