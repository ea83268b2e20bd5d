"""Problems, scenes and norms that the tests of the Python client share."""
