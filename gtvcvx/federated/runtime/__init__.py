"""Runs: who is there, what becomes of messages, what is recorded."""
