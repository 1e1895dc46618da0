"""What runs in the process of one client.

Imports as little as a client needs: dozens of these are started at a time.
"""
