"""Where tags take effect: one module for each backend, and base.py for what they have in common."""
