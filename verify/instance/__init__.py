"""Problems that come in as plain data, as the arrays that verification works on."""
