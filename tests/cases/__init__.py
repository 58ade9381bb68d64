"""Acceptance cases, through the front door: what users of such memories ran into elsewhere.

Each test names in its docstring the case that it shows (WIN-03, TEN-01 …), so that the tests of one
can be found together; ids such as `scope.cross_tenant_absent` are of a public acceptance protocol
for memory systems. What a lower layer's own tests show in full is not repeated here.
"""
