"""The command line: one command a file, heavy imports inside the command.

A command reads its arguments, calls the library, prints. Data goes to standard output, all else
to standard error; ``netplan --help`` imports neither numpy nor any command.
"""
