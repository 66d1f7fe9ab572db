"""``python -m netplan ...`` is ``netplan ...``."""

from netplan.cli.main import main

main()
