"""The code that several tests share.

A folder has the name of the package of steelyard whose tests use it. Besides, ``services`` connects
to real servers, ``soaks`` has programs that run for a long time, ``third_party`` a distribution
with plugins, and ``project`` the code for tests of the repository. ``*_laws`` are checks that each
implementation of a store passes. Modules at the top are for tests of all packages.
"""
