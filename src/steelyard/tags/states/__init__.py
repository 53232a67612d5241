"""The state of one instance's tags, and its changes: values in, values out.

Nothing here accesses a database or a backend. A change lists the rows to write and to delete; the
store applies it in one transaction.
"""
