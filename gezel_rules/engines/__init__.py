"""The programs that run models: where to find one, and the one this package brings itself."""
