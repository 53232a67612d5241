"""The backends that apply tags, one module each; base.py is their contract."""
