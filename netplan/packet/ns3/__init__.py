"""ns-3 as packet back end: the wheel ``ns3`` with netplan's RoCE model (``model.cc``)."""
