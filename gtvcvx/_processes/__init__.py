"""Processes of our own on this machine: started, let in by a token, ended; for whoever runs them.

Those who use it are clients of federated runs (`gtvcvx.federated.transport`) and workers of
distributed ones (`gtvcvx.distributed.engines`). Only the standard library is imported here, since
every process that is started imports it.
"""
