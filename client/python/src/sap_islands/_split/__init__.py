"""One scene over several servers."""
