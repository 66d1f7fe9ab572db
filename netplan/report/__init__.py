"""Values in, something to look at out: diagrams today, tables, plots and pages beside them.

Reports only read: nothing here changes a fabric, a demand or a result.
"""
