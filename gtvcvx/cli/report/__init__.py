"""``gtvcvx report``: a solution as one HTML page.

Modules gather what a section says as plain values; what it looks like is in ``templates/``.
"""
