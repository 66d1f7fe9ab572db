"""What a rate means on the wire: payload line rates, latencies and efficiency figures."""
