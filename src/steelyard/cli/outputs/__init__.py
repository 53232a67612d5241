"""The output of commands: columns, formats, pages, progress."""
