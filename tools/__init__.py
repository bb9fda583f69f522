"""Programs that rebuild what the package ships as data."""
