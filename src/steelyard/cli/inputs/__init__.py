"""The input of commands: arguments, cloud files, connections to clouds."""
