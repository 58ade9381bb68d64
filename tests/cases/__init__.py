"""Acceptance cases, through the front door: what users of such memories ran into elsewhere.

Each test names in its docstring the case that it shows. What a lower layer's own tests show in
full is not repeated here.
"""
