"""Mutation tests: small defects are planted in the core, one at a time, and its tests must notice.

`python -m tests.mutation` (`make mutation`) plants all that `operators` knows in the functions of
`reliable_channel.sds` and `reliable_channel.engine`; `--sample N` as many, drawn from `--seed`.
"""
