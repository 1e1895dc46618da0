"""The whole problem by Clarabel's interior-point method, and when it takes over."""
