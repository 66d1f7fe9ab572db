"""Run netplan from a checkout: ``python cli.py ...`` is ``netplan ...``."""

from netplan.cli.main import main

if __name__ == "__main__":
    main()
