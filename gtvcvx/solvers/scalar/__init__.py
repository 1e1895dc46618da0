"""Problems whose coordinates are scalar ones with piecewise quadratic losses: slopes and gaps."""
