"""Running a method: limits, the incumbent, checks of the gap, history and display."""
