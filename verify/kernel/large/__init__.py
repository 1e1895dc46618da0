"""The exact checker of large documents, `.gtvc`: raw arrays in a zip file, read in a stream.

Section 8 of SCHEMA.md. The rules of losses are those of `verify.kernel.rules`. Standard library
only; loaded only for such files.
"""
