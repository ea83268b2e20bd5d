"""Problems and judgements that the tests of the Python client share."""
